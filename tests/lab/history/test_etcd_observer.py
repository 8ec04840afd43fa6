"""The observer reads every write of a real etcd, and says what it cannot read."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio
import anyio.to_thread
import grpc.aio
import pytest
from aetcd import rpc

from nominee.lab.history import etcd_observer, etcd_watch
from nominee.lab.history.etcd_observer import EtcdObserver, next_pause
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.invariants.objects.resource_versions import ResourceVersions
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.wire import envelope
from tests.lab.invariants.histories import History, pod, violations_of
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

AT_ONCE = 25
"""Writes that are under way at once, so that they are many also on a slow machine."""


@pytest.fixture
async def channel(own_etcd: ThrowawayEtcd) -> AsyncIterator[grpc.aio.Channel]:
    channel = await connect([own_etcd.address])
    yield channel
    await channel.close()


async def _put(channel: grpc.aio.Channel, name: str, *, node: str = "") -> int:
    """Store a pod, and return its revision."""
    data = envelope.encode(pod(name, node=node))
    request = rpc.PutRequest(key=kinds.POD.key("default", name).encode(), value=data)
    answer = await rpc.KVStub(channel).Put(request, wait_for_ready=True, timeout=PATIENCE_SECONDS)
    revision: int = answer.header.revision
    return revision


async def _delete(channel: grpc.aio.Channel, name: str) -> None:
    await rpc.KVStub(channel).DeleteRange(rpc.DeleteRangeRequest(key=kinds.POD.key("default", name).encode()))


async def _compact(channel: grpc.aio.Channel, revision: int) -> None:
    await rpc.KVStub(channel).Compact(rpc.CompactionRequest(revision=revision, physical=True))


async def _read(observer: EtcdObserver) -> list[Revision]:
    with anyio.fail_after(PATIENCE_SECONDS):
        return [revision async for batch in observer.read() for revision in batch]


def _nodes(revision: Revision) -> tuple[str | None, str | None]:
    """Return the pod's node before and after, None where there is no pod."""
    before, after = revision.before(kinds.POD), revision.after(kinds.POD)
    return (
        None if before is None else before.spec.nodeName,
        None if after is None else after.spec.nodeName,
    )


async def test_it_reads_every_write_with_the_object_before_and_after(channel: grpc.aio.Channel) -> None:
    assert await _read(EtcdObserver(channel)) == []
    first = await _put(channel, "p")
    await _put(channel, "p", node="n1")
    await _delete(channel, "p")
    observer = EtcdObserver(channel)
    found = await _read(observer)
    assert [(each.revision, *_nodes(each)) for each in found] == [
        (first, None, ""),
        (first + 1, "", "n1"),
        (first + 2, "n1", None),
    ]
    assert {(each.kind, each.namespace, each.name) for each in found} == {(kinds.POD, "default", "p")}
    assert observer.coverage.is_complete
    assert observer.coverage.end == first + 2
    await _put(channel, "q")
    assert [each.name for each in await _read(observer)] == ["q"]
    assert await _read(observer) == []


async def test_a_long_history_is_read_in_parts(
    channel: grpc.aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        await _put(channel, f"p{number % 7}", node=f"n{number}")
    await _delete(channel, "p3")

    def summary(revisions: list[Revision]) -> list[tuple[int, str, str | None, str | None]]:
        return [(each.revision, each.name, *_nodes(each)) for each in revisions]

    at_once = summary(await _read(EtcdObserver(channel)))
    monkeypatch.setattr(etcd_observer, "RANGE_REVISIONS_MIN", 5)
    monkeypatch.setattr(etcd_observer, "RANGE_REVISIONS_MAX", 12)
    monkeypatch.setattr(etcd_watch, "_PART_REVISIONS", 3)
    observer = EtcdObserver(channel)
    assert summary(await _read(observer)) == at_once
    assert len(at_once) == 31
    await _compact(channel, 10)
    compacted = EtcdObserver(channel)
    assert [each for each in summary(await _read(compacted)) if each[0] > 10] == [
        each for each in at_once if each[0] > 10
    ]
    assert compacted.coverage.begin == 10


async def test_what_was_compacted_is_replaced_by_a_state_and_reported(channel: grpc.aio.Channel) -> None:
    await _put(channel, "kept")
    await _put(channel, "gone")
    await _delete(channel, "gone")
    begin = await _put(channel, "kept", node="n1")
    await _compact(channel, begin)
    await _put(channel, "new")
    observer = EtcdObserver(channel)
    found = await _read(observer)
    assert [(each.name, each.is_state, each.revision) for each in found] == [
        ("kept", True, begin),
        ("new", False, begin + 1),
    ]
    assert (observer.coverage.begin, observer.coverage.gaps) == (begin, [])
    assert not observer.coverage.is_complete


async def test_a_gap_is_reported_and_only_its_changes_follow(channel: grpc.aio.Channel) -> None:
    await _put(channel, "same")
    await _put(channel, "changed")
    await _put(channel, "gone")
    observer = EtcdObserver(channel)
    await _read(observer)
    last = observer.coverage.end
    await _put(channel, "changed", node="n1")
    await _delete(channel, "gone")
    end = await _put(channel, "new")
    await _compact(channel, end)
    found = await _read(observer)
    assert [(each.name, each.is_state, *_nodes(each)) for each in found] == [
        ("gone", True, "", None),
        ("changed", True, "", "n1"),
        ("new", True, None, ""),
    ]
    assert observer.coverage.gaps == [(last + 1, end)]
    assert await _read(observer) == []


async def test_a_deletion_that_was_compacted_is_not_missed(channel: grpc.aio.Channel) -> None:
    await _put(channel, "gone")
    observer = EtcdObserver(channel)
    await _read(observer)
    await _delete(channel, "gone")
    deleted = observer.coverage.end + 1
    await _compact(channel, deleted)
    await _put(channel, "new")
    found = await _read(observer)
    assert [(each.name, each.is_state, each.value is None) for each in found] == [
        ("gone", True, True),
        ("new", False, False),
    ]
    assert observer.coverage.gaps == [(deleted, deleted)]


async def test_it_continues_when_etcd_comes_back(own_etcd: ThrowawayEtcd, channel: grpc.aio.Channel) -> None:
    await _put(channel, "p")
    observer = EtcdObserver(channel, now=lambda: 5.0)
    seen = []
    with anyio.fail_after(PATIENCE_SECONDS):
        async with aclosing(observer.follow()) as batches:
            seen += [each.name for each in await anext(batches)]
            await anyio.to_thread.run_sync(own_etcd.kill)
            with pytest.raises(HistoryUnavailable):
                await anext(batches)
        await anyio.to_thread.run_sync(own_etcd.start)
        await _put(channel, "q")
        async with aclosing(observer.follow()) as batches:
            again = await anext(batches)
    assert seen == ["p"]
    assert [(each.name, each.time) for each in again] == [("q", 5.0)]
    assert observer.coverage.is_complete


async def test_the_writes_of_a_busy_etcd_are_gathered(channel: grpc.aio.Channel) -> None:
    count, sizes, names, written = 400, list[int](), list[str](), dict[int, str]()
    observer = EtcdObserver(channel, now=lambda: 5.0, gather_seconds=1.0)

    async def put(name: str) -> None:
        written[await _put(channel, name)] = name

    async def write() -> None:
        for number in range(0, count, AT_ONCE):
            # One after the other they may be too few in a second for a busy etcd.
            async with anyio.create_task_group() as several:
                for offset in range(AT_ONCE):
                    several.start_soon(put, f"p{number + offset}")
        await anyio.sleep(2.5)
        await put("calm")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group, aclosing(observer.follow()) as batches:
            group.start_soon(write)
            async for batch in batches:
                sizes.append(len(batch))
                names += [each.name for each in batch]
                if names[-1] == "calm":
                    break
    assert names == [name for _, name in sorted(written.items())]
    assert len(names) == count + 1
    assert len(sizes) < count / 2
    assert max(sizes) > 20


@pytest.mark.parametrize(
    ("pause", "count", "want"),
    [
        (0.25, 50, 0.5),  # 200 a second: busy
        (0.5, 430, 1.0),
        (1.0, 860, 1.0),
        (1.0, 199, 0.25),
        (0.25, 49, 0.25),
        (0.25, 9, 0.0),  # fewer than 40 a second: watched again
        (1.0, 39, 0.0),
    ],
)
def test_the_pause_grows_while_etcd_is_busy(pause: float, count: int, want: float) -> None:
    assert next_pause(pause, count, least=0.25, most=1.0) == want


async def test_an_etcd_that_stays_busy_is_known_and_read_less_often(channel: grpc.aio.Channel) -> None:
    observer = EtcdObserver(channel, now=lambda: 5.0, gather_seconds=0.25, gather_seconds_max=1.0)
    was_busy = anyio.Event()

    async def write() -> None:
        number = 0
        while not was_busy.is_set():
            async with anyio.create_task_group() as several:
                for _ in range(AT_ONCE):
                    number += 1
                    several.start_soon(_put, channel, f"p{number}")
        await eventually(lambda: observer.is_busy, lambda found: not found)
        await _put(channel, "calm")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group, aclosing(observer.follow()) as batches:
            group.start_soon(write)
            async for batch in batches:
                if observer.is_busy:
                    was_busy.set()
                if batch[-1].name == "calm":
                    break
    assert was_busy.is_set()


async def test_an_etcd_that_lost_writes_is_a_violation(
    own_etcd: ThrowawayEtcd, channel: grpc.aio.Channel
) -> None:
    await _put(channel, "kept")
    await anyio.to_thread.run_sync(own_etcd.stop)
    data = own_etcd.directory / "etcd" / "member-data"
    backup = own_etcd.directory / "backup"
    await anyio.to_thread.run_sync(shutil.copytree, data, backup)
    await anyio.to_thread.run_sync(own_etcd.start)
    await _put(channel, "lost")
    await _put(channel, "lost-too")
    observer = EtcdObserver(channel)
    history = History(revisions=await _read(observer))
    await anyio.to_thread.run_sync(own_etcd.stop)
    await anyio.to_thread.run_sync(shutil.rmtree, data)
    await anyio.to_thread.run_sync(shutil.move, backup, data)
    await anyio.to_thread.run_sync(own_etcd.start)
    await _put(channel, "other")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with aclosing(observer.follow()) as batches:
            async for batch in batches:
                history.revisions += batch
                if batch[-1].name == "other":
                    break
    (violation,) = violations_of(ResourceVersions, history)
    assert violation.objects == ("Pod default/lost-too", "Pod default/lost")
    assert violation.revisions == (3, 4)
    assert {each.name for each in history.revisions if each.is_state} == {"lost", "lost-too", "other"}
