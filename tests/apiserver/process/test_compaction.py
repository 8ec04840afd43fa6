"""Etcd's history is dropped after one to two intervals."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from nominee.apiserver.process.compaction import compact_regularly
from nominee.apiserver.storage.interface import Compacted
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, pod, running
from tests.support.etcd import ThrowawayEtcd

INTERVAL_SECONDS = 300.0


class Counted:
    """Storage whose compactions can be waited for."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.revisions: list[int] = []
        self.changed = anyio.Event()

    async def compact(self, revision: int) -> None:
        await self._storage.compact(revision)
        self.revisions.append(revision)
        self.changed.set()
        self.changed = anyio.Event()


async def test_what_is_an_interval_old_is_forgotten_and_what_is_younger_is_not(etcd: ThrowawayEtcd) -> None:
    clock = FakeClock()
    async with running(etcd) as bench, anyio.create_task_group() as group:
        storage = Counted(bench.storage)
        first = await bench.create(pod("a"))
        second = await bench.update(pod("a", app="x"), first)
        await bench.cache.wait_until(second)
        group.start_soon(compact_regularly, storage, bench.cache, clock, INTERVAL_SECONDS)
        await clock.settle()
        third = await bench.update(pod("a", app="y"), second)
        await bench.cache.wait_until(third)
        done = storage.changed
        await clock.advance(INTERVAL_SECONDS)
        with anyio.fail_after(LIMIT_SECONDS):
            await done.wait()
        assert storage.revisions == [second]
        prefix = kinds.POD.key_prefix()
        with pytest.raises(Compacted):
            await bench.storage.range(prefix, revision=first)
        assert (await bench.storage.range(prefix, revision=second)).items[0].mod_revision == second
        group.cancel_scope.cancel()
