"""The gRPC front through the real client, over a registry without rules on a real etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import anyio
import grpc
import grpc.aio
import pytest

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.access.authorizer import ALLOWED, NO_OPINION, Decision, RulesFor
from nominee.apiserver.cache.watch_cache import CacheLimits, WatchCache
from nominee.apiserver.chain.metrics import ServerCollector
from nominee.apiserver.fronts.grpc.front import ServerIdentity
from nominee.apiserver.fronts.grpc.request import frame_of
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.apiserver.process.server import ApiServer, Parts, ServerOptions, Serving
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, WatchEvent
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, pod
from tests.support.etcd import ThrowawayEtcd
from tests.support.plain_registry import PlainRegistry


@dataclass
class Running:
    server: ApiServer
    client: Client
    stopping: anyio.Event
    metrics: ServerCollector

    def requests(self, verb: str, code: int) -> float:
        """Return how many requests of a verb (as metrics name it) ended with a code."""
        total = next(each for each in self.metrics.collect() if each.name == "apiserver_request")
        return sum(
            sample.value
            for sample in total.samples
            if sample.labels["verb"] == verb and sample.labels["code"] == str(code)
        )


async def _plain(storage: EtcdStorage, cache: WatchCache) -> Parts:
    return Parts(registry=PlainRegistry(storage, cache))


@asynccontextmanager
async def serving(
    etcd: ThrowawayEtcd,
    limits: CacheLimits | None = None,
    access: Access = OPEN,
    *,
    batches: bool = False,
) -> AsyncIterator[Running]:
    options = ServerOptions(etcd_servers=[etcd.address], limits=limits)

    async def make_parts(storage: EtcdStorage, cache: WatchCache) -> Parts:
        return replace(await _plain(storage, cache), access=access)

    server = ApiServer(options, make_parts, ServerIdentity("1.37", {"A": True}), SystemClock())
    stopping, ready = anyio.Event(), anyio.Event()

    began: list[Serving] = []

    async def on_ready(serving: Serving) -> None:
        began.append(serving)
        ready.set()

    async with anyio.create_task_group() as group:
        group.start_soon(server.run, stopping, on_ready)
        with anyio.fail_after(LIMIT_SECONDS):
            await ready.wait()
        async with Client(server.address, batches=batches) as client:
            yield Running(server, client, stopping, began[0].metrics)
        stopping.set()


@pytest.mark.parametrize("batches", [False, True], ids=["unary", "batched"])
async def test_create_get_list_update_patch_delete(etcd: ThrowawayEtcd, batches: bool) -> None:
    async with serving(etcd, batches=batches) as running:
        client = running.client
        created = await client.create(pod("a", app="x"))
        assert (await client.get(kinds.POD, "a", "default")) == created
        listed = await client.list(kinds.POD)
        assert [p.metadata.name for p in listed.items] == ["a"]
        changed = core.Pod()
        changed.CopyFrom(created)
        changed.metadata.labels["app"] = "y"
        updated = await client.update(changed)
        assert int(updated.metadata.resourceVersion) > int(created.metadata.resourceVersion)
        with pytest.raises(StatusError) as caught:
            await client.update(changed)
        assert errors.is_conflict(caught.value)
        patched = await client.patch(kinds.POD, "a", "default", {"metadata": {"labels": {"b": "1"}}})
        assert dict(patched.metadata.labels) == {"app": "y", "b": "1"}
        assert await client.delete(kinds.POD, "a", "default")
        with pytest.raises(StatusError, match='pods "a" not found') as caught:
            await client.get(kinds.POD, "a", "default")
        assert errors.is_not_found(caught.value)
        assert caught.value.details is not None
        assert caught.value.details.name == "a"
        info = await client.server_info()
        assert (info.version, info.feature_gates) == ("1.37", {"A": True})
        assert info.revision > int(updated.metadata.resourceVersion)


async def test_pages(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running:
        for name in "abc":
            await running.client.create(pod(name))
        first = await running.client.list(kinds.POD, limit=2)
        assert first.remaining_item_count == 1
        rest = await running.client.list(kinds.POD, limit=2, continue_token=first.continue_token)
        assert [p.metadata.name for p in rest.items] == ["c"]
        assert rest.continue_token == ""
        assert rest.remaining_item_count is None


async def test_a_watch_reports_every_change(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running:
        client = running.client
        created = await client.create(pod("a"))
        seen: list[WatchEvent[core.Pod]] = []
        watch = client.watch(kinds.POD, resource_version=created.metadata.resourceVersion)
        async with aclosing(watch):
            await client.create(pod("b"))
            await client.delete(kinds.POD, "a", "default")
            with anyio.fail_after(LIMIT_SECONDS):
                async for event in watch:
                    seen.append(event)
                    if len(seen) == 2:
                        break
        assert [(e.type, e.object.metadata.name) for e in seen] == [("ADDED", "b"), ("DELETED", "a")]
        assert seen[1].object.metadata.resourceVersion == str(seen[1].revision)


async def test_a_watch_from_too_long_ago_is_refused_as_expired(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, CacheLimits(history_per_kind=1)) as running:
        for name in "abc":
            await running.client.create(pod(name))
        await running.client.list(kinds.POD)
        with pytest.raises(StatusError) as caught:
            async for _ in running.client.watch(kinds.POD, resource_version="1"):
                pass
        assert errors.is_gone(caught.value)


async def test_stopping_ends_watches_with_a_status(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running:
        batches = running.client.watch_batches(kinds.POD, resource_version="0")
        assert await anext(batches) == []
        running.stopping.set()
        with anyio.fail_after(LIMIT_SECONDS), pytest.raises(StatusError) as caught:
            await anext(batches)
        assert caught.value.code == 503


async def test_what_cannot_be_understood_is_a_bad_request(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running, grpc.aio.insecure_channel(running.server.address) as channel:
        stub = api_grpc.APIStub(channel)
        node = core.Node()
        pods = api.Target(version="v1", resource="pods", namespace="default")
        requests = [
            (stub.Create, api.CreateRequest(target=pods, body=b"junk"), 400),
            (stub.Create, api.CreateRequest(target=pods, body=envelope.encode(node)), 400),
            (stub.Delete, api.DeleteRequest(target=pods, options=b"\xff"), 400),
            (stub.Patch, api.PatchRequest(target=pods, patch=b"{}"), 400),
            (stub.List, api.ListRequest(target=pods, label_selector="a in ("), 400),
            (stub.Get, api.GetRequest(target=api.Target(version="v1", resource="gizmos")), 404),
            # A bug in the registry is the client's 500; the server goes on.
            (stub.Update, api.UpdateRequest(target=pods, body=envelope.encode(pod("a"))), 500),
        ]
        for method, request, code in requests:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await method(request)
            assert errors.from_server(caught.value)
            assert errors.from_rpc_error(caught.value).code == code, request


async def test_an_event_is_serialized_once_for_all_watchers(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running:
        cache = running.server.cache
        assert cache is not None
        with anyio.fail_after(LIMIT_SECONDS):
            async with cache.watch(kinds.POD) as one, cache.watch(kinds.POD) as two:
                await running.client.create(pod("a"))
                (first,), (second,) = await anext(one), await anext(two)
        frame = frame_of(first)
        assert frame_of(second) is frame
        both = api.WatchResponse.FromString(frame + frame)
        assert [e.type for e in both.events] == [api.WatchEvent.ADDED] * 2
        assert envelope.decode(kinds.POD, both.events[1].body).metadata.name == "a"


async def test_a_client_that_does_not_read_is_cut_off_and_goes_on_from_where_it_was(
    etcd: ThrowawayEtcd,
) -> None:
    # What lies in the sockets and in gRPC's windows comes on top of the queue: it takes big objects.
    async with (
        serving(etcd, CacheLimits(queue_per_watcher=5)) as running,
        Client(running.server.address) as slow,
    ):
        batches = slow.watch_batches(kinds.POD, resource_version="")
        assert await anext(batches) == []
        cache = running.server.cache
        assert cache is not None
        padding = "x" * 200_000
        written: list[str] = []
        while cache.watchers:
            assert len(written) < 1000, "the watch was not ended"
            big = pod(f"p{len(written):04}")
            big.metadata.annotations["padding"] = padding
            await running.client.create(big)
            written.append(big.metadata.name)
        seen: list[WatchEvent[core.Pod]] = []

        async def read_on() -> None:
            async for batch in batches:
                seen.extend(batch)

        with anyio.fail_after(LIMIT_SECONDS), pytest.raises(StatusError, match="fell behind") as caught:
            await read_on()
        assert caught.value.code == 429
        assert 0 < len(seen) < len(written)
        again = slow.watch(kinds.POD, resource_version=str(seen[-1].revision))
        async with aclosing(again):
            with anyio.fail_after(LIMIT_SECONDS):
                while len(seen) < len(written):
                    seen.append(await anext(again))
        assert [event.object.metadata.name for event in seen] == written


class OnlyKnown:
    """As a role with resourceNames, or a node that has a pod with one secret."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        return ALLOWED if attributes.name == "known" else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor()


async def test_a_name_beside_a_collection_opens_nothing(etcd: ThrowawayEtcd) -> None:
    secrets = api.Target(version="v1", resource="secrets", namespace="default", name="known")
    async with (
        serving(etcd, access=Access(None, OnlyKnown())) as running,
        grpc.aio.insecure_channel(running.server.address) as channel,
    ):
        stub = api_grpc.APIStub(channel)
        for selector, refused in (("", True), ("metadata.name!=known", True), ("metadata.name=known", False)):
            listing = api.ListRequest(target=secrets, field_selector=selector)
            deletion = api.DeleteCollectionRequest(target=secrets, list=listing)
            watch = stub.Watch(
                api.WatchRequest(target=secrets, field_selector=selector, resource_version="0")
            )
            for call in (stub.List(listing), stub.DeleteCollection(deletion), watch):
                code = grpc.StatusCode.OK
                try:
                    with anyio.fail_after(LIMIT_SECONDS):
                        if call is watch:
                            await watch.initial_metadata()
                            if refused:
                                await watch.read()
                        else:
                            await call
                except grpc.aio.AioRpcError as error:
                    code = error.code()
                assert (code is grpc.StatusCode.PERMISSION_DENIED) is refused, (selector, code)
            watch.cancel()


class InOneNamespace:
    """As a role binding there: everything in it, nothing elsewhere."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        return ALLOWED if attributes.namespace == "mine" else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor()


async def test_a_namespace_beside_what_is_in_none_opens_nothing(etcd: ThrowawayEtcd) -> None:
    node = api.Target(version="v1", resource="nodes", namespace="mine", name="n")
    other = api.Target(version="v1", resource="namespaces", namespace="mine", name="other")
    async with (
        serving(etcd, access=Access(None, InOneNamespace())) as running,
        grpc.aio.insecure_channel(running.server.address) as channel,
    ):
        stub = api_grpc.APIStub(channel)
        for target in (node, other):
            for call in (
                stub.Get(api.GetRequest(target=target)),
                stub.List(api.ListRequest(target=target)),
                stub.List(api.ListRequest(target=target, field_selector="metadata.name=mine")),
                stub.Create(api.CreateRequest(target=target)),
                stub.Update(api.UpdateRequest(target=target)),
                stub.Patch(api.PatchRequest(target=target)),
                stub.Delete(api.DeleteRequest(target=target)),
                stub.DeleteCollection(api.DeleteCollectionRequest(target=target)),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as caught, anyio.fail_after(LIMIT_SECONDS):
                    await call
                assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        # Its own namespace, and what is in it.
        for mine in (
            api.Target(version="v1", resource="namespaces", name="mine"),
            api.Target(version="v1", resource="pods", namespace="mine", name="p"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught, anyio.fail_after(LIMIT_SECONDS):
                await stub.Get(api.GetRequest(target=mine))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_subresource_is_not_deleted(etcd: ThrowawayEtcd) -> None:
    async with (
        serving(etcd) as running,
        grpc.aio.insecure_channel(running.server.address) as channel,
    ):
        await running.client.create(pod("p"))
        target = api.Target(
            version="v1", resource="pods", namespace="default", name="p", subresource="status"
        )
        with pytest.raises(grpc.aio.AioRpcError), anyio.fail_after(LIMIT_SECONDS):
            await api_grpc.APIStub(channel).Delete(api.DeleteRequest(target=target))
        assert (await running.client.get(kinds.POD, "p", "default")).metadata.name == "p"


class OnlyReviews:
    """Lets its user create reviews, and `jane` read pods."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        asked = (attributes.verb, attributes.group, attributes.resource)
        mine = asked == ("create", "authorization.k8s.io", "subjectaccessreviews")
        janes = user.name == "jane" and "dev" in user.groups and asked == ("get", "", "pods")
        return ALLOWED if mine or janes else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor((), incomplete=True)


async def test_may_another_user(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, access=Access(None, OnlyReviews())) as running:
        spec = authorization.SubjectAccessReviewSpec(user="jane", groups=["dev"])
        spec.resourceAttributes.verb, spec.resourceAttributes.resource = "get", "pods"
        assert await running.client.may(spec)
        spec.user = "joe"
        assert not await running.client.may(spec)
        with pytest.raises(StatusError) as caught:
            await running.client.may(authorization.SubjectAccessReviewSpec(user="jane"))
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")


async def test_who_may_not_ask_is_not_answered(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, access=Access(None, OnlyKnown())) as running:
        with pytest.raises(StatusError) as caught:
            await running.client.may(authorization.SubjectAccessReviewSpec(user="jane"))
        assert caught.value.code == 403
