"""The API server as a process: start, options, kill -9 under writes."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, events
from nominee.machinery.client.api_client import Client, retry_unavailable
from tests.apiserver.cache.test_watch_cache import pod
from tests.apiserver.storage.test_etcd_killed import Ledger, Seen, write
from tests.support.cluster import Cluster
from tests.support.etcd import skip_if_etcd_loses_writes
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS
WRITERS = 8
WRITES_BETWEEN_KILLS = 100
KILLS = 3


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Metrics of the API server: GETs of pods that were not found, all GETs of pods, stored namespaces."""

    not_found: float
    durations: float
    namespaces: float

    @classmethod
    def of(cls, cluster: Cluster) -> Counters:
        """Return what the metrics of the cluster's API server show."""
        gets = {"group": "", "resource": "pods", "subresource": "", "verb": "GET", "version": "v1"}
        values = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(cluster.ask("apiserver", "/metrics").text)
            for sample in family.samples
        }

        def value(name: str, labels: dict[str, str]) -> float:
            return values.get((name, *sorted(labels.items())), 0)

        return cls(
            not_found=value("apiserver_request_total", {**gets, "code": "404"}),
            durations=value("apiserver_request_duration_seconds_count", gets),
            namespaces=value("apiserver_storage_objects", {"resource": "namespaces"}),
        )


async def test_create_get_list_watch_bind_delete(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver")
    before = Counters.of(cluster)  # the server may have served other tests
    async with cluster.client() as client:
        assert {n.metadata.name for n in (await client.list(kinds.NAMESPACE)).items} == {
            "default",
            "kube-system",
            "kube-public",
            "kube-node-lease",
        }
        batches = client.watch_batches(kinds.POD, resource_version="")
        assert await anext(batches) == []
        created = await client.create(pod("a"))
        assert created.spec.priority == 0
        assert created.metadata.uid
        await client.bind("default", "a", "n1")
        assert (await client.get(kinds.POD, "a", "default")).spec.nodeName == "n1"
        seen = [event.type for event in await anext(batches)]
        while len(seen) < 2:
            seen += [event.type for event in await anext(batches)]
        assert seen == ["ADDED", "MODIFIED"]
        await client.delete(kinds.POD, "a", "default", grace_period_seconds=0)
        await batches.aclose()
        with pytest.raises(StatusError):
            await client.get(kinds.POD, "a", "default")
    # The server counts a request after its answer has left.
    now = await eventually(lambda: Counters.of(cluster), lambda now: now.not_found > before.not_found)
    assert now.not_found == before.not_found + 1
    assert now.durations == before.durations + 2
    assert now.namespaces == 4
    assert await cluster.stop("apiserver") == 0


async def test_events_of_both_groups_are_the_same_objects(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        event = events.Event()
        event.metadata.name, event.metadata.namespace = "e", "default"
        event.regarding.kind, event.regarding.name, event.regarding.namespace = "Pod", "a", "default"
        event.reason, event.action, event.type, event.note = "Scheduled", "Binding", "Normal", "hello"
        event.reportingController, event.reportingInstance = "default-scheduler", "default-scheduler-1"
        event.eventTime.seconds = 1_700_000_000
        new = client.watch(kinds.EVENTS_EVENT, resource_version="", field_selector="regarding.name=a")
        old = client.watch(kinds.EVENT, resource_version="", field_selector="involvedObject.name=a")
        async with aclosing(new), aclosing(old):
            created = await client.create(event)
            with anyio.fail_after(LIMIT_SECONDS):
                as_new, as_old = (await anext(new)).object, (await anext(old)).object
        assert as_new == created
        assert (as_new.note, as_old.message) == ("hello", "hello")
        assert as_old.involvedObject.name == "a"
        listed = await client.list(kinds.EVENTS_EVENT, field_selector="reportingController=default-scheduler")
        assert listed.items == [created]
        assert (await client.list(kinds.EVENT, field_selector="reason=Other")).items == []


async def test_events_go_after_their_time_to_live(cluster: Cluster) -> None:
    cluster.arguments("apiserver", "--event-ttl", "1s", "--disable-admission-plugins", "Priority")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        assert (await client.create(pod("a"))).spec.HasField("priority") is False
        event = core.Event()
        event.metadata.name, event.metadata.namespace = "e", "default"
        event.involvedObject.kind, event.involvedObject.name = "Pod", "a"
        event.involvedObject.namespace = "default"
        watch = client.watch(kinds.EVENT, resource_version="")
        async with aclosing(watch):
            await client.create(event)
            with anyio.fail_after(LIMIT_SECONDS):
                types = [(await anext(watch)).type for _ in range(2)]
        assert types == ["ADDED", "DELETED"]


async def test_a_server_that_dies_between_write_and_answer_has_written(cluster: Cluster) -> None:
    cluster.arguments("apiserver", "--failpoints", "apiserver.write.after=crash")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        with pytest.raises(StatusError) as caught:
            await client.create(pod("a"))
        assert errors.is_retryable(caught.value)
        await cluster.exited("apiserver")
        cluster.arguments("apiserver")
        await cluster.start("apiserver")
        with pytest.raises(StatusError) as caught:
            await retry_unavailable(lambda: client.create(pod("a")))
        assert errors.is_already_exists(caught.value)


async def follow_over_restarts(client: Client, seen: Seen, started: anyio.Event) -> None:
    """List and watch as an informer does: resume at the last revision, and list again when it has expired."""
    while True:
        try:
            listed = await retry_unavailable(lambda: client.list(kinds.POD), attempts_max=30)
            seen.restart({p.metadata.name: p for p in listed.items}, int(listed.resource_version))
            started.set()
            while True:
                await watch_once(client, seen)
        except StatusError as error:
            if not errors.is_gone(error):
                raise


async def watch_once(client: Client, seen: Seen) -> None:
    try:
        async for batch in client.watch_batches(kinds.POD, resource_version=str(seen.last_revision)):
            for event in batch:
                seen.note(event.type, event.object, event.revision)
    except StatusError as error:
        if not errors.is_retryable(error):
            raise
        await retry_unavailable(client.server_info, attempts_max=30)


async def kill_under_writes(cluster: Cluster, victim: str) -> None:
    ledger, seen, stop = Ledger(), Seen(), anyio.Event()
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        with anyio.fail_after(LIMIT_SECONDS):
            async with anyio.create_task_group() as group:
                started = anyio.Event()
                group.start_soon(follow_over_restarts, client, seen, started)
                await started.wait()
                async with anyio.create_task_group() as writers:
                    for number in range(WRITERS):
                        writers.start_soon(write, client, f"w{number}", ledger, stop)
                    for _ in range(KILLS):
                        await ledger.reach(ledger.writes + WRITES_BETWEEN_KILLS)
                        cluster.kill(victim)
                        await cluster.start(victim)
                    await ledger.reach(ledger.writes + WRITES_BETWEEN_KILLS)
                    stop.set()
                listed = await client.list(kinds.POD)
                await seen.reach(int(listed.resource_version))
                group.cancel_scope.cancel()
    stored = {p.metadata.name: p.metadata.labels["n"] for p in listed.items}
    assert stored == {name: str(number) for name, number in ledger.numbers.items()}
    assert seen.disorder == []
    assert seen.present == stored


async def test_kill_9_of_the_api_server_loses_nothing_and_clients_go_on(cluster: Cluster) -> None:
    await kill_under_writes(cluster, "apiserver")


@pytest.mark.chaos
async def test_kill_9_of_etcd_loses_nothing_and_clients_go_on(cluster: Cluster) -> None:
    skip_if_etcd_loses_writes()
    await kill_under_writes(cluster, "etcd")
