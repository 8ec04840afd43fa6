"""Informers, events and leader election on a real API server and etcd that are killed and come back."""

from __future__ import annotations

import random

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.client.leader_election import LeaderElector, LeadershipLostError, Timing
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.events.series_recorder import SeriesRecorder
from tests.machinery.api_server import config_map, running
from tests.support.cluster import Cluster
from tests.support.etcd import skip_if_etcd_loses_writes
from tests.support.eventually import eventually


class History:
    """A handler that checks that revisions only grow, and that adds, updates and deletes alternate."""

    def __init__(self, informer: Informer[core.ConfigMap]) -> None:
        self.revisions: dict[str, int] = {}
        self.events = 0
        informer.add_handler(on_add=self._add, on_update=self._update, on_delete=self._delete)

    def _add(self, new: core.ConfigMap) -> None:
        self.events += 1
        assert new.metadata.name not in self.revisions
        self.revisions[new.metadata.name] = int(new.metadata.resourceVersion)

    def _update(self, old: core.ConfigMap, new: core.ConfigMap) -> None:
        self.events += 1
        assert self.revisions[new.metadata.name] == int(old.metadata.resourceVersion)
        assert int(new.metadata.resourceVersion) > int(old.metadata.resourceVersion)
        self.revisions[new.metadata.name] = int(new.metadata.resourceVersion)

    def _delete(self, last: core.ConfigMap, stale: bool) -> None:
        self.events += 1
        del self.revisions[last.metadata.name]


class Writer:
    """Creates, updates and deletes without pause; knows what was acknowledged."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._rng = random.Random(name)
        self.acknowledged = 0
        self.kept: dict[str, str] = {}
        self.unsure: set[str] = set()
        self.stopped = False

    async def run(self) -> None:
        for number in range(100_000):
            if self.stopped:
                return
            await self._step(f"{self._name}-{number}")
        raise AssertionError("never stopped")

    async def _step(self, name: str) -> None:
        try:
            await self._client.create(config_map(name, x="1"))
            self.kept[name] = "1"
            if self._rng.random() < 0.5:
                self.kept.pop(name)
                self.unsure.add(name)
                changed = config_map(name, x="2")
                await self._client.update(changed)
                self.unsure.discard(name)
                self.kept[name] = "2"
            if self._rng.random() < 0.3:
                self.kept.pop(name)
                self.unsure.add(name)
                await self._client.delete(kinds.CONFIG_MAP, name, "default")
                self.unsure.discard(name)
            self.acknowledged += 1
        except StatusError as error:
            if not errors.is_retryable(error):
                raise
            self.unsure.add(name)
            self.kept.pop(name, None)
            await anyio.sleep(0.02)


async def check_nothing_was_lost(
    client: Client, informer: Informer[core.ConfigMap], history: History, writers: list[Writer]
) -> None:
    """The informer's copy is what the server has, and that holds all that was acknowledged."""
    listed = await retry_unavailable(lambda: client.list(kinds.CONFIG_MAP, "default"), attempts_max=40)
    stored = {item.metadata.name: int(item.metadata.resourceVersion) for item in listed.items}
    data = {item.metadata.name: item.data.get("x", "") for item in listed.items}
    for writer in writers:
        assert writer.kept.items() <= data.items()
    await eventually(
        lambda: history.revisions == stored,
        explain=lambda: sorted(history.revisions.items() ^ stored.items())[:10],
    )
    assert {key.metadata.name for key in informer.list()} == set(stored)


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "kills"), [("apiserver", 3), ("etcd", 2)])
async def test_an_informer_misses_nothing_while_its_servers_are_killed(
    cluster: Cluster, victim: str, kills: int
) -> None:
    if victim == "etcd":
        skip_if_etcd_loses_writes()
    async with running(cluster) as client, anyio.create_task_group() as group:
        informer = Informer(client, kinds.CONFIG_MAP, namespace="default")
        history = History(informer)
        group.start_soon(informer.run)
        await informer.wait_synced()
        writers = [Writer(client, f"w{index}") for index in range(4)]

        def acknowledged() -> int:
            return sum(writer.acknowledged for writer in writers)

        async def more_than(count: int) -> None:
            await eventually(lambda: acknowledged() > count)

        async with anyio.create_task_group() as writing:
            for writer in writers:
                writing.start_soon(writer.run)
            for _ in range(kills):
                await more_than(acknowledged() + 100)
                cluster.kill(victim)
                await cluster.start(victim)
            for writer in writers:
                writer.stopped = True
        await check_nothing_was_lost(client, informer, history, writers)
        group.cancel_scope.cancel()


@pytest.mark.slow
async def test_etcd_and_the_api_server_are_killed_in_a_quiet_moment(cluster: Cluster) -> None:
    """Runs also where etcd may lose writes under load: it writes nothing else."""
    async with running(cluster) as client, anyio.create_task_group() as group:
        informer = Informer(client, kinds.CONFIG_MAP, namespace="default")
        history = History(informer)
        group.start_soon(informer.run)
        await client.create(config_map("before"))
        await eventually(lambda: "before" in history.revisions)
        cluster.kill("etcd")
        cluster.kill("apiserver")
        await cluster.start("etcd", "apiserver")
        await retry_unavailable(lambda: client.create(config_map("after")), attempts_max=40)
        await eventually(lambda: "after" in history.revisions)
        assert "before" in history.revisions
        group.cancel_scope.cancel()


async def test_a_paused_api_server_is_only_waited_for(cluster: Cluster) -> None:
    async with running(cluster) as client, anyio.create_task_group() as group:
        informer = Informer(client, kinds.CONFIG_MAP, namespace="default")
        history = History(informer)
        group.start_soon(informer.run)
        await informer.wait_synced()
        cluster.pause("apiserver")
        async with anyio.create_task_group() as writing:
            writing.start_soon(client.create, config_map("late"))
            await anyio.wait_all_tasks_blocked()
            assert "late" not in history.revisions
            cluster.resume("apiserver")
        await eventually(lambda: "late" in history.revisions)
        assert informer.gaps == 1
        group.cancel_scope.cancel()


async def test_events_are_stored_and_become_series(cluster: Cluster) -> None:
    async with running(cluster) as client, anyio.create_task_group() as group:
        recorder = SeriesRecorder(client, "default-scheduler", instance="default-scheduler-here")
        group.start_soon(recorder.run)
        about = await client.create(config_map("a"))
        for _ in range(3):
            recorder.event(about, "Warning", "FailedScheduling", action="Scheduling", note="0/1 nodes")
        recorder.event(about, "Normal", "Scheduled", action="Binding", note="Successfully assigned")

        listed = await eventually(
            lambda: client.list(kinds.EVENT, "default"),
            lambda found: {event.reason for event in found.items} >= {"FailedScheduling", "Scheduled"},
        )
        by_reason = {event.reason: event for event in listed.items}
        assert recorder.failed == 0
        failed = by_reason["FailedScheduling"]
        assert failed.series.count == 2
        assert failed.message == "0/1 nodes"
        assert (failed.involvedObject.kind, failed.involvedObject.name) == ("ConfigMap", "a")
        assert failed.reportingComponent == "default-scheduler"
        again = await client.get(kinds.EVENTS_EVENT, failed.metadata.name, "default")
        assert (again.note, again.regarding.name, again.series.count) == ("0/1 nodes", "a", 2)
        group.cancel_scope.cancel()


async def test_core_events_keep_every_message_and_count_equal_ones(cluster: Cluster) -> None:
    async with running(cluster) as client, anyio.create_task_group() as group:
        recorder = CorrelatingRecorder(client, "replicaset-controller")
        group.start_soon(recorder.run)
        about = await client.create(config_map("a"))
        for note in ("Created pod: a", "Created pod: b", "Created pod: a", "Created pod: a"):
            recorder.event(about, "Normal", "SuccessfulCreate", action="", note=note)

        async def counts() -> dict[str, int]:
            found = (await client.list(kinds.EVENT, "default")).items
            return {event.message: event.count for event in found}

        await eventually(counts, lambda seen: seen == {"Created pod: a": 3, "Created pod: b": 1})
        found = (await client.list(kinds.EVENT, "default")).items
        assert len(found) == 2
        for event in found:
            assert (event.source.component, event.source.host) == ("replicaset-controller", "")
            assert (event.reportingComponent, event.reportingInstance) == ("replicaset-controller", "")
            assert event.HasField("firstTimestamp")
            assert event.HasField("lastTimestamp")
            assert not event.HasField("series")
        # Events expire: the next equal one is created again, and still counts those before.
        for event in found:
            await client.delete(kinds.EVENT, event.metadata.name, "default")
        recorder.event(about, "Normal", "SuccessfulCreate", action="", note="Created pod: a")
        await eventually(counts, lambda seen: seen == {"Created pod: a": 4})
        assert recorder.failed == 0
        group.cancel_scope.cancel()


async def test_leaders_take_turns_on_a_real_lease(cluster: Cluster) -> None:
    timing = Timing(lease_seconds=1.5, renew_deadline_seconds=1.0, retry_seconds=0.2)
    leading: list[str] = []

    async with running(cluster) as client, anyio.create_task_group() as group:

        async def candidate(name: str, scope: anyio.CancelScope) -> None:
            elector = LeaderElector(
                client, name="test", identity=name, timing=timing, rng=random.Random(name)
            )

            async def lead() -> None:
                leading.append(name)
                assert len(leading) == 1, "two lead at once"
                try:
                    await anyio.sleep_forever()
                finally:
                    leading.remove(name)

            with scope:
                while True:
                    try:
                        await elector.run(lead)
                    except LeadershipLostError:
                        continue

        scopes = {name: anyio.CancelScope() for name in "abc"}
        for name, scope in scopes.items():
            group.start_soon(candidate, name, scope)
        await eventually(lambda: len(leading) == 1)
        first = leading[0]
        scopes[first].cancel()
        await eventually(lambda: len(leading) == 1 and leading[0] != first)
        lease = await client.get(kinds.LEASE, "test", "kube-system")
        assert lease.spec.leaseTransitions >= 1

        # There is no leader without an API server, and there is one when it is back.
        cluster.kill("apiserver")
        await eventually(lambda: not leading)
        await cluster.start("apiserver")
        await eventually(lambda: len(leading) == 1)
        group.cancel_scope.cancel()
