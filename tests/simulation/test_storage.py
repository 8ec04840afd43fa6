"""The API server's own storage code on the simulated etcd: watches, leases, compaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

import grpc.aio
import pytest

from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.apiserver.storage.etcd_watch import Change, watch
from nominee.apiserver.storage.interface import Compacted, KeyExists, RevisionMismatch, StorageUnavailable
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.runtime import task_faults
from nominee.simulation import per_process
from nominee.simulation.simulation import ETCD_ADDRESS, Simulation

KEY = "/registry/pods/default/p"
Play = Callable[[EtcdStorage, grpc.aio.Channel], Awaitable[None]]


def play(steps: Play) -> Simulation:
    """Run steps on the storage of a new etcd."""
    simulation = Simulation(1)

    async def main() -> None:
        simulation.start("etcd", "etcd")
        async with await connect([ETCD_ADDRESS]) as channel:
            await steps(EtcdStorage(channel, simulation.clock), channel)

    simulation.run(main)
    return simulation


def test_writes_compare_revisions() -> None:
    async def steps(storage: EtcdStorage, _: grpc.aio.Channel) -> None:
        first = await storage.create(KEY, b"1")
        with pytest.raises(KeyExists):
            await storage.create(KEY, b"2")
        second = await storage.update(KEY, b"2", expected_revision=first)
        assert second == first + 1 == await storage.current_revision()
        with pytest.raises(RevisionMismatch):
            await storage.delete(KEY, expected_revision=first)
        old = await storage.range("/registry/", revision=first)
        assert [item.data for item in old.items] == [b"1"]

    play(steps)


def test_a_watch_shows_the_changes_from_a_revision_on() -> None:
    async def steps(storage: EtcdStorage, channel: grpc.aio.Channel) -> None:
        first = await storage.create(KEY, b"1")
        seen: list[Change] = []
        async with aclosing(watch(channel, first)) as batches:
            assert await anext(batches) == []
            seen += await anext(batches)
            await storage.delete(KEY, expected_revision=first)
            seen += await anext(batches)
        assert seen == [Change(KEY, b"1", first), Change(KEY, None, first + 1)]

    play(steps)


def test_a_compacted_revision_cannot_be_watched() -> None:
    async def steps(storage: EtcdStorage, channel: grpc.aio.Channel) -> None:
        first = await storage.create(KEY, b"1")
        second = await storage.update(KEY, b"2", expected_revision=first)
        await storage.compact(second)
        async with aclosing(watch(channel, first)) as batches:
            assert await anext(batches) == []
            with pytest.raises(Compacted):
                await anext(batches)
        with pytest.raises(Compacted):
            await storage.range("/registry/", revision=first)

    play(steps)


def test_a_lease_ends_with_its_keys() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        simulation.start("etcd", "etcd")
        async with await connect([ETCD_ADDRESS]) as channel:
            storage = EtcdStorage(channel, simulation.clock)
            await storage.create(KEY, b"1", lease_seconds=60)
            await simulation.clock.sleep(59.0)
            assert await storage.get(KEY) is not None
            await simulation.clock.sleep(10.0)
            assert await storage.get(KEY) is None

    simulation.run(main)


def test_a_lost_answer_to_an_older_versions_update_is_no_success() -> None:
    async def lose(write: Awaitable[int]) -> int:
        faults = task_faults.current()
        faults.put("1*cut-response", "etcd", "Txn")
        per_process.use_rules([faults])
        try:
            return await write
        finally:
            assert [rule.fired for rule in faults.rules] == [1]
            faults.clear()
            per_process.use_rules([])

    async def steps(storage: EtcdStorage, _: grpc.aio.Channel) -> None:
        first = await storage.create(KEY, b"1")
        second = await storage.update(KEY, b"2", expected_revision=first)
        with pytest.raises(RevisionMismatch):
            await lose(storage.update(KEY, b"2", expected_revision=first))
        assert await lose(storage.update(KEY, b"3", expected_revision=second)) == second + 1

    play(steps)


def test_without_etcd_a_write_fails_after_its_limit() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        async with await connect([ETCD_ADDRESS]) as channel:
            with pytest.raises(StorageUnavailable):
                await EtcdStorage(channel, simulation.clock).create(KEY, b"1")
        assert 10.0 < simulation.clock.monotonic() < 20.0

    simulation.run(main)
