"""Three members of etcd: whichever dies, reads, writes and watches go on."""

from __future__ import annotations

import anyio
import pytest

from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.api import kinds
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.cache.test_watch_cache import Bench, pod, take
from tests.support.etcd_trio import EtcdTrio
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

LIMIT_SECONDS = PATIENCE_SECONDS


async def test_each_member_may_die_in_turn(etcd_trio: EtcdTrio) -> None:
    channel = await connect(etcd_trio.servers)
    storage = EtcdStorage(channel, SystemClock())
    cache = WatchCache(storage, channel, SystemClock())
    bench = Bench(channel, storage, cache)
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(cache.run)
            await cache.wait_loaded()
            async with cache.watch(kinds.POD) as watcher:
                for server in etcd_trio.servers:
                    name = etcd_trio.name_at(server)
                    await anyio.to_thread.run_sync(etcd_trio.kill, name)
                    revision = await bench.create(pod(f"without-{name}"))
                    assert await storage.current_revision() >= revision
                    (event,) = await take(watcher, 1)
                    assert (event.object.name, event.revision) == (f"without-{name}", revision)
                    await anyio.to_thread.run_sync(etcd_trio.start, name)
            assert len(cache.list(kinds.POD)) == 3
            group.cancel_scope.cancel()
    await channel.close()
