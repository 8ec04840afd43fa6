"""The replica set controller over a fake API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.replica_sets.shell.replica_sets import ReplicaSetController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.objects import key_of, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import WatchEvent
from nominee.machinery.client.watches import informer
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import EPOCH, owned_by, pod, replica_set
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi, Json


async def test_pods_that_the_watch_shows_during_a_reconciliation_are_not_created_again() -> None:
    web = replica_set(replicas=1, uid="s")
    released = pod("released", uid="r", labels={"app": "other"}, owners=[owned_by("s")])
    created = pod("created", uid="c", labels={"app": "web"}, owners=[owned_by("s")])

    class Api(FakeApi):
        async def patch(
            self, kind: Kind[M], name: str, namespace: str, patch: Json, *, subresource: str = "", **_: object
        ) -> M:
            pods._put(created)
            controller._pod_added(created)
            return await super().patch(kind, name, namespace, patch, subresource=subresource)

    api = Api()
    for each in (web, released, created):
        api.put(each)
    context = context_of(api, FakeClock())
    controller = ReplicaSetController(context)
    pods = context.informers.of(kinds.POD)
    controller.owners._put(web)
    pods._put(released)
    controller.expectations.expect(key_of(web), 0.0, created="c", version=1)
    await controller.reconcile(key_of(web))
    assert controller.expectations.satisfied(key_of(web), 0.0)
    assert {each.metadata.name for each in api.all_of(kinds.POD)} == {"released", "created"}


@pytest.mark.parametrize(
    ("owners", "is_queued"),
    [([owned_by("d", kind="DaemonSet")], True), ([], False)],
    ids=["released", "an orphan before"],
)
async def test_a_pod_that_an_owner_of_another_kind_releases_is_looked_at(
    owners: list[Json], *, is_queued: bool
) -> None:
    web = replica_set(replicas=1, uid="s")
    controller = ReplicaSetController(context_of(FakeApi(), FakeClock()))
    controller.owners._put(web)
    if (key := controller.queue.get_nowait()) is not None:
        controller.queue.done(key)
    before, after = (pod("p", uid="p", labels={"app": "web"}, owners=each) for each in (owners, []))
    controller._pod_updated(before, after)
    assert len(controller.queue) == is_queued


async def test_a_pod_that_a_long_batch_shows_before_the_answer_to_its_creation_is_not_expected() -> None:
    class Api(FakeApi):
        async def create(self, obj: M, **_: object) -> M:
            made = await super().create(obj)
            if isinstance(made, core.Pod):
                for number in range(2 * informer._YIELD_EVERY):
                    self.put(pod(f"other-{number}", uid=f"o-{number}"))
                while controller.pods.get(metadata_of(made).name, "default") is None:
                    await anyio.lowlevel.checkpoint()
                answered_at.append(int(controller.pods.resource_version))
            return made

    web, clock, answered_at = replica_set(uid="s"), FakeClock(), list[int]()
    api = Api.of(web)
    context = context_of(api, clock)
    controller = ReplicaSetController(context)
    async with synced(context):
        await controller.create_pod(web, pod_of(web, web.spec.template))
        assert not controller.outstanding()
        await clock.settle()
        assert answered_at[0] < int(controller.pods.resource_version)


@pytest.mark.parametrize(
    ("controlled", "beside", "deleted"),
    [(True, "old", "beside"), (False, "old", "young"), (False, "new", "young")],
    ids=["of a deployment", "of none", "of none, with own pods on one node"],
)
async def test_a_pod_beside_others_of_its_deployment_is_deleted_first(
    *, controlled: bool, beside: str, deleted: str
) -> None:
    """A set without a controller has no related pods, not even its own ones: the youngest pod goes."""
    api = FakeApi()
    context = context_of(api, FakeClock(float(EPOCH + 2000)))
    controller = ReplicaSetController(context)
    sets = [replica_set("new", replicas=1 + (beside == "new"), uid="new"), replica_set("old", uid="old")]
    for each in sets:
        if controlled:
            each.metadata.ownerReferences.add(kind="Deployment", name="web", uid="d", controller=True)
        controller.owners._put(each)
        api.put(each)
    for name, of, where, created in (
        ("young", "new", "n1", 1990), ("beside", "new", "n2", 0), ("other", beside, "n2", 0),
    ):  # fmt: skip
        owners = [owned_by(of, name=of)]
        one = pod(name, uid=name, labels={"app": of}, node=where, owners=owners, created=created)
        controller.pods._put(one)
        api.put(one)
    await controller.reconcile(key_of(sets[0]))
    assert deleted not in {each.metadata.name for each in api.all_of(kinds.POD)}
    assert len(api.all_of(kinds.POD)) == 2


async def test_the_end_of_a_pod_that_the_watch_has_shown_is_not_expected_again() -> None:
    """Another client deletes a pod after it was read: a second deletion makes no event."""
    web, active = replica_set(uid="s"), pod("p", uid="p", owners=[owned_by("s")])
    ending = pod("p", uid="p", owners=[owned_by("s")], deleted=True)
    api = FakeApi(deletes_gracefully=True)
    context = context_of(api, FakeClock())
    controller = ReplicaSetController(context)
    pods = context.informers.of(kinds.POD)
    api.put(active)
    pods._put(active)
    await controller.delete_pod(web, active)
    assert controller.outstanding()
    pods._put(ending)
    assert not controller.outstanding()
    await controller.delete_pod(web, active)
    assert not controller.outstanding()
    assert [request.verb for request in api.requests] == ["delete", "delete"]


async def _is_replaced(api: FakeApi, shown: anyio.Event, *, seconds: float = 0.0) -> None:
    """Remove the pod of a set whose watch shows nothing, and expect another one once it is `shown`.

    `seconds` is how long the watch waits before it is opened again.
    """
    clock = FakeClock()
    context = context_of(api, clock)
    controller = ReplicaSetController(context)
    async with synced(context, controller.run):
        await api.until(lambda: len(api.all_of(kinds.POD)) == 1)
        (first,) = api.all_of(kinds.POD)
        api.remove(kinds.POD, first.metadata.name)
        await clock.settle()
        assert controller.outstanding()
        shown.set()
        if seconds:
            await clock.advance(seconds)
        await api.until(lambda: len(api.all_of(kinds.POD)) == 1)


async def test_a_pod_that_came_and_went_between_two_lists_is_replaced() -> None:
    class Api(FakeApi):
        """The watch of pods shows nothing, and ends when it is broken."""

        async def watch_batches(
            self, kind: Kind[M], namespace: str = "", *, resource_version: str, **options: object
        ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
            if kind is kinds.POD:
                yield []
                await broken.wait()
                raise errors.expired("too old resource version")
            async with aclosing(
                super().watch_batches(kind, namespace, resource_version=resource_version)
            ) as batches:
                async for batch in batches:
                    yield batch

    broken = anyio.Event()
    await _is_replaced(Api.of(replica_set(replicas=1, uid="s")), broken, seconds=1.0)


async def test_a_pod_of_which_merged_events_show_the_end_alone_is_replaced() -> None:
    class Api(FakeApi):
        """The watch of pods is withheld; then it shows the last event of each pod."""

        async def watch_batches(
            self, kind: Kind[M], namespace: str = "", *, resource_version: str, **options: object
        ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
            async with aclosing(
                super().watch_batches(kind, namespace, resource_version=resource_version)
            ) as batches:
                async for batch in batches:
                    if kind is kinds.POD and batch:
                        await released.wait()
                        yield [event for event in batch if event.type != "ADDED"]
                    else:
                        yield batch

    released = anyio.Event()
    await _is_replaced(Api.of(replica_set(replicas=1, uid="s")), released)


async def test_a_pod_that_is_gone_when_its_creation_is_answered_is_replaced() -> None:
    class Api(FakeApi):
        async def create(self, obj: M, **_: object) -> M:
            made = await super().create(obj)
            if isinstance(made, core.Pod):
                made_pods.append(made)
                if len(made_pods) == 1:
                    self.objects[kinds.POD].clear()
                    self.log.clear()
                    controller.pods._reflector.resource_version = str(self.revision)
            return made

    web, made_pods = replica_set(replicas=1, uid="s"), list[core.Pod]()
    api = Api.of(web)
    context = context_of(api, FakeClock())
    controller = ReplicaSetController(context)
    async with synced(context, controller.run):
        await api.until(lambda: len(made_pods) == 2)
