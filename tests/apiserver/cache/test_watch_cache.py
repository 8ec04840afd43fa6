"""The watch cache on a real etcd: order, start points, selectors, slow watchers, restarts of etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import grpc.aio
import pytest

from nominee.apiserver.cache.watch_cache import CacheLimits, WatchCache
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import EventType, Watcher, WatchEvent
from nominee.apiserver.schema.version_fields import TABLE_VERSION
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


def pod(name: str, namespace: str = "default", **labels: str) -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = name, namespace
    made.metadata.labels.update(labels)
    container = made.spec.containers.add()
    container.name, container.image = "c", "i"
    return made


@dataclass
class Bench:
    """A cache that runs on a real etcd, and hands for it."""

    channel: grpc.aio.Channel
    storage: EtcdStorage
    cache: WatchCache

    async def create(self, obj: core.Pod) -> int:
        key = kinds.POD.key(obj.metadata.namespace, obj.metadata.name)
        return await self.storage.create(key, envelope.encode(obj))

    async def update(self, obj: core.Pod, revision: int) -> int:
        key = kinds.POD.key(obj.metadata.namespace, obj.metadata.name)
        return await self.storage.update(key, envelope.encode(obj), expected_revision=revision)

    async def delete(self, obj: core.Pod, revision: int) -> int:
        key = kinds.POD.key(obj.metadata.namespace, obj.metadata.name)
        return await self.storage.delete(key, expected_revision=revision)

    async def caught_up(self) -> int:
        """Wait until the cache has all that is stored; returns that revision."""
        revision = await self.storage.current_revision()
        await eventually(lambda: self.cache.revision >= revision)
        return revision


@asynccontextmanager
async def running(
    etcd: ThrowawayEtcd, limits: CacheLimits | None = None, version: Version = TABLE_VERSION
) -> AsyncIterator[Bench]:
    channel = await connect([etcd.address])
    storage = EtcdStorage(channel, SystemClock())
    cache = WatchCache(storage, channel, SystemClock(), limits=limits, version=version)
    async with anyio.create_task_group() as group:
        group.start_soon(cache.run)
        with anyio.fail_after(LIMIT_SECONDS):
            await cache.wait_loaded()
        yield Bench(channel, storage, cache)
        group.cancel_scope.cancel()
    await channel.close()


@pytest.mark.parametrize("action", ['1*error("lost")', "1*error(503)"])
async def test_an_error_while_events_are_received_breaks_the_watch_of_etcd(
    etcd: ThrowawayEtcd, action: str
) -> None:
    """They are read again: no watcher misses one."""
    async with running(etcd) as bench:
        watcher = bench.cache.watch(kinds.POD, since_revision=bench.cache.revision)
        failpoints.arm("apiserver.storage.watch", action)
        try:
            await bench.create(pod("a"))
            await bench.create(pod("b"))
            assert [event.object.name for event in await take(watcher, 2)] == ["a", "b"]
        finally:
            failpoints.arm("apiserver.storage.watch", "off")


async def take(watcher: Watcher, count: int) -> list[WatchEvent]:
    events: list[WatchEvent] = []
    with anyio.fail_after(LIMIT_SECONDS):
        while len(events) < count:
            events += await anext(watcher)
    assert len(events) == count
    return events


def seen(events: list[WatchEvent]) -> list[tuple[str, str, int]]:
    return [(event.type.name, event.object.name, event.revision) for event in events]


async def test_what_was_there_before_is_loaded_and_what_comes_is_followed(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        first = await bench.create(pod("a"))
    async with running(etcd) as bench:
        second = await bench.create(pod("b"))
        await bench.cache.wait_until(second)
        found = bench.cache.list(kinds.POD)
        assert [(o.name, o.revision) for o in found] == [("a", first), ("b", second)]
        loaded = bench.cache.get(kinds.POD, "default", "a")
        assert loaded is not None
        assert loaded.message.metadata.resourceVersion == str(first)
        assert bench.cache.get(kinds.POD, "default", "c") is None
        assert bench.cache.list(kinds.POD, "other") == []


async def test_a_watch_from_a_revision_gets_all_later_changes_in_order(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        a = await bench.create(pod("a"))
        b = await bench.create(pod("b"))
        await bench.cache.wait_until(b)
        async with bench.cache.watch(kinds.POD, since_revision=a) as watcher:
            changed = await bench.update(pod("a", app="x"), a)
            gone = await bench.delete(pod("b"), b)
            events = await take(watcher, 3)
            assert seen(events) == [("ADDED", "b", b), ("MODIFIED", "a", changed), ("DELETED", "b", gone)]
            assert events[2].object.message.metadata.resourceVersion == str(gone)
        assert bench.cache.watchers == 0


async def test_a_watch_without_a_revision_begins_with_the_present(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        b = await bench.create(pod("b"))
        a = await bench.create(pod("a"))
        await bench.create(pod("a", "other"))
        await bench.cache.wait_until(a + 1)
        async with bench.cache.watch(kinds.POD, "default") as watcher:
            c = await bench.create(pod("c"))
            await bench.create(pod("c", "other"))
            assert seen(await take(watcher, 3)) == [("ADDED", "a", a), ("ADDED", "b", b), ("ADDED", "c", c)]


def labelled(value: str) -> Callable[[CachedObject], bool]:
    return lambda obj: obj.labels.get("app") == value


async def test_a_selector_turns_entering_and_leaving_into_added_and_deleted(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        async with bench.cache.watch(
            kinds.POD, since_revision=bench.cache.revision, predicate=labelled("x")
        ) as watcher:
            one = await bench.create(pod("a", app="y"))
            two = await bench.update(pod("a", app="x"), one)
            three = await bench.update(pod("a", app="x", more="1"), two)
            four = await bench.update(pod("a", app="z"), three)
            five = await bench.update(pod("a", app="w"), four)
            six = await bench.update(pod("a", app="x"), five)
            seven = await bench.delete(pod("a"), six)
            events = await take(watcher, 5)
        want = [("ADDED", two), ("MODIFIED", three), ("DELETED", four), ("ADDED", six), ("DELETED", seven)]
        assert [(e.type.name, e.revision) for e in events] == want
        # As upstream: what left the selection is shown as it last was in it.
        assert events[2].object.labels == {"app": "x", "more": "1"}
        # The same from the window of the past.
        async with bench.cache.watch(kinds.POD, since_revision=one, predicate=labelled("x")) as late:
            assert [(e.type.name, e.revision) for e in await take(late, 5)] == want


async def test_watchers_share_one_event(etcd: ThrowawayEtcd) -> None:
    async with (
        running(etcd) as bench,
        bench.cache.watch(kinds.POD) as one,
        bench.cache.watch(kinds.POD) as two,
    ):
        await bench.create(pod("a"))
        assert (await take(one, 1))[0] is (await take(two, 1))[0]


async def test_a_revision_older_than_the_window_has_expired(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(history_per_kind=3)) as bench:
        revision = 0
        for number in range(5):
            revision = await bench.create(pod(str(number)))
        await bench.cache.wait_until(revision)
        with pytest.raises(StatusError, match="too old resource version") as caught:
            bench.cache.watch(kinds.POD, since_revision=revision - 4)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        async with bench.cache.watch(kinds.POD, since_revision=revision - 3) as watcher:
            assert [name for _, name, _ in seen(await take(watcher, 3))] == ["2", "3", "4"]
        # Another kind has had no changes: its window reaches back to the load.
        bench.cache.watch(kinds.NODE, since_revision=revision - 4).close()


async def test_a_watcher_that_does_not_read_is_ended_and_the_others_are_not(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(queue_per_watcher=3)) as bench:
        slow, quick = bench.cache.watch(kinds.POD), bench.cache.watch(kinds.POD)
        for number in range(5):
            await bench.create(pod(str(number)))
            await take(quick, 1)
        assert slow.queued == 0, "nor does it keep what waited for it"
        with pytest.raises(StatusError, match="fell behind") as caught:
            await anext(slow)
        assert caught.value.code == 429
        assert bench.cache.watchers == 1
        quick.close()


async def test_bookmarks_tell_the_revision_of_all_kinds_and_time_ends_a_watch(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(bookmark_seconds=0.2)) as bench:
        revision = await bench.create(pod("a"))
        await bench.cache.wait_until(revision)
        async with bench.cache.watch(kinds.NODE, bookmarks=True, timeout_seconds=1.0) as watcher:
            batches = [batch async for batch in watcher]
        events = [event for batch in batches for event in batch]
        assert {event.type for event in events} == {EventType.BOOKMARK}
        assert events[-1].revision == revision
        assert isinstance(events[-1].object.message, core.Node)
        assert events[-1].object.message.metadata.resourceVersion == str(revision)


async def test_a_key_of_another_owner_moves_the_revision(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        revision = await bench.storage.create("another/key", b"x")
        await bench.cache.wait_until(revision)


async def test_waiting_for_a_revision_that_does_not_come_is_a_timeout(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(wait_seconds=0.1)) as bench:
        with pytest.raises(StatusError, match="Too large resource version") as caught:
            await bench.cache.wait_until(bench.cache.revision + 1000)
        assert caught.value.code == 504


async def test_an_unreadable_value_is_left_out(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        revision = await bench.storage.create("/registry/pods/default/broken", b'{"kind": "Pod"}')
        await bench.cache.wait_until(revision)
        assert bench.cache.list(kinds.POD) == []


async def test_bytes_that_no_selector_can_read_end_only_the_watch_that_looks_inside(
    etcd: ThrowawayEtcd,
) -> None:
    async with (
        running(etcd) as bench,
        bench.cache.watch(kinds.POD) as blind,
        bench.cache.watch(kinds.POD, predicate=labelled("x")) as looking,
    ):
        await bench.storage.create("/registry/pods/default/bad", envelope.wrap(kinds.POD, b"\xff\xff"))
        await bench.create(pod("good", app="x"))
        assert [e.object.name for e in await take(blind, 2)] == ["bad", "good"]
        with anyio.fail_after(LIMIT_SECONDS), pytest.raises(StatusError, match="cannot be read"):
            await anext(looking)


async def test_watches_go_on_over_a_kill_of_etcd(own_etcd: ThrowawayEtcd) -> None:
    async with running(own_etcd) as bench, bench.cache.watch(kinds.POD) as watcher:
        before = await bench.create(pod("before"))
        await take(watcher, 1)
        own_etcd.kill()
        await anyio.to_thread.run_sync(own_etcd.start)
        after = await bench.create(pod("after"))
        assert after == before + 1
        assert seen(await take(watcher, 1)) == [("ADDED", "after", after)]


async def test_the_cache_lists_again_after_a_compaction_that_it_missed(own_etcd: ThrowawayEtcd) -> None:
    async with running(own_etcd) as bench:
        watcher = bench.cache.watch(kinds.POD)
        # The cache is cut off: its channel is closed, the other one goes on.
        channel = await connect([own_etcd.address])
        other = EtcdStorage(channel, SystemClock())
        cache = WatchCache(other, bench.channel, SystemClock())
        first = await bench.create(pod("a"))
        await take(watcher, 1)
        async with anyio.create_task_group() as group:
            # A cache that believes to be at a revision that etcd has dropped by the time it watches.
            cache._revision = first
            second = await bench.update(pod("a", app="x"), first)
            third = await bench.create(pod("b"))
            await bench.storage.compact(third)
            stale = cache.watch(kinds.POD)
            group.start_soon(cache.run)
            with anyio.fail_after(LIMIT_SECONDS):
                await cache.wait_loaded()
            assert [(o.name, o.revision) for o in cache.list(kinds.POD)] == [("a", second), ("b", third)]
            with pytest.raises(StatusError) as caught:
                await anext(stale)
            assert caught.value.code == 410
            group.cancel_scope.cancel()
        await channel.close()
        watcher.close()
