"""The recorder keeps every write in a file, also when etcd or itself is killed meanwhile."""

from __future__ import annotations

import anyio
import anyio.to_thread
import grpc
from aetcd import rpc

from nominee.lab.history.history_file import NAME, HistoryReader
from nominee.lab.history.recorder import Recorder
from nominee.machinery.runtime.clock import SystemClock
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS


def _put(etcd: ThrowawayEtcd, key: str) -> None:
    with grpc.insecure_channel(etcd.address) as channel:
        rpc.KVStub(channel).Put(rpc.PutRequest(key=key.encode(), value=b"x"), timeout=PATIENCE_SECONDS)


def _recorded(etcd: ThrowawayEtcd) -> list[str]:
    return [revision.key for revision in HistoryReader(etcd.directory / NAME)]


async def _wait_for(etcd: ThrowawayEtcd, key: str) -> None:
    await eventually(lambda: _recorded(etcd), lambda keys: key in keys)


async def _record(etcd: ThrowawayEtcd, *, first: str, second: str, last: str) -> None:
    """Record until `first` is recorded, and `second` after a kill of etcd, and `last` is put."""
    recorder = Recorder(etcd.directory, SystemClock())
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        await _wait_for(etcd, first)
        await anyio.to_thread.run_sync(etcd.kill)
        await anyio.to_thread.run_sync(etcd.start)
        _put(etcd, second)
        await _wait_for(etcd, second)
        _put(etcd, last)
        group.cancel_scope.cancel()


async def test_it_records_until_it_is_stopped_and_continues_later(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, "/a")
    await _record(own_etcd, first="/a", second="/b", last="/c")
    assert _recorded(own_etcd) == ["/a", "/b", "/c"], "what etcd has at the end is recorded"
    _put(own_etcd, "/d")
    await _record(own_etcd, first="/d", second="/e", last="/f")
    assert _recorded(own_etcd) == ["/a", "/b", "/c", "/d", "/e", "/f"]
    reader = HistoryReader(own_etcd.directory / NAME)
    times = [revision.time for revision in reader]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000.0
    assert reader.coverage.is_complete
