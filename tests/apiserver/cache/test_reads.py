"""Consistent reads on a real etcd: pages, and what the recorded lists (test_api_list.py) do not cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.requests import ListOptions, WatchOptions
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.faults.call_faults import FAULTS
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, pod, running, take
from tests.support.etcd import ThrowawayEtcd


async def test_pages_stay_at_the_first_pages_revision_while_objects_change(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        for name in "abcd":
            await bench.create(pod(name, app=name))
        first = await reads.list(kinds.POD, "", ListOptions(limit=2))
        await bench.create(pod("c2"))
        rest = await reads.list(kinds.POD, "", ListOptions(limit=9, continue_token=first.continue_token))
        assert [o.name for o in [*first.items, *rest.items]] == ["a", "b", "c", "d"]
        assert rest.resource_version == first.resource_version
        # By a selector that few match, over a state that only etcd has.
        found = await reads.list(
            kinds.POD,
            "default",
            ListOptions(
                label_selector="app in (a,d)",
                resource_version=first.resource_version,
                resource_version_match="Exact",
            ),
        )
        assert [o.name for o in found.items] == ["a", "d"]


async def test_a_list_keeps_its_revision_while_the_cache_lists_again(
    etcd: ThrowawayEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch from the revision 0 would not show which of the listed objects have gone meanwhile."""
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        await bench.create(pod("a"))
        revision = await bench.caught_up()
        began = anyio.Event()

        async def load() -> None:
            began.set()
            await anyio.sleep_forever()

        monkeypatch.setattr(bench.cache, "_load", load)
        FAULTS.put("relist", "etcd", "Watch")
        try:
            with anyio.fail_after(LIMIT_SECONDS):
                await began.wait()
        finally:
            FAULTS.clear()
        found = await reads.list(kinds.POD, "", ListOptions(resource_version="0"))
        assert ([o.name for o in found.items], found.resource_version) == (["a"], str(revision))


async def test_a_compacted_token_is_expired_and_offers_to_go_on(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        for name in "abc":
            await bench.create(pod(name))
        first = await reads.list(kinds.POD, "", ListOptions(limit=1))
        later = await bench.create(pod("d"))
        await bench.cache.wait_until(later)
        await bench.storage.compact(later)
        with pytest.raises(StatusError) as caught:
            await reads.list(kinds.POD, "", ListOptions(limit=1, continue_token=first.continue_token))
        assert errors.is_gone(caught.value)
        token = getattr(caught.value.to_message().metadata, "continue")  # a Python keyword
        rest = await reads.list(kinds.POD, "", ListOptions(continue_token=token))
        assert [o.name for o in rest.items] == ["b", "c", "d"]
        assert rest.resource_version == str(later)


async def test_get_reads_etcd_or_the_cache(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        revision = await bench.create(pod("a"))
        for version in ("", str(revision), "0"):
            found = await reads.get(kinds.POD, "default", "a", resource_version=version)
            assert found is not None
            assert found.message.metadata.resourceVersion == str(revision)
        assert await reads.get(kinds.POD, "default", "b") is None
        with pytest.raises(StatusError, match='parsing "x": invalid syntax') as caught:
            await reads.get(kinds.POD, "default", "a", resource_version="x")
        assert caught.value.code == 500


async def test_a_watch_selects_by_fields_and_begins_consistently(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        await bench.create(pod("a"))
        await bench.create(pod("b"))
        options = WatchOptions(field_selector="metadata.name=b")
        async with await reads.watch(kinds.POD, "", options) as watcher:
            assert [e.object.name for e in await take(watcher, 1)] == ["b"]
        with pytest.raises(StatusError, match="field label not supported: bogus"):
            await reads.watch(kinds.POD, "", WatchOptions(field_selector="bogus=1"))


@pytest.fixture
def lagging() -> Iterator[Callable[[], None]]:
    """Return a function that withholds etcd's watch."""
    yield lambda: FAULTS.put("hold", "etcd")
    FAULTS.clear()


async def test_a_cache_that_lags(etcd: ThrowawayEtcd, lagging: Callable[[], None]) -> None:
    async with running(etcd, CacheLimits(wait_seconds=0.2)) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        old = await bench.create(pod("a"))
        await bench.caught_up()
        lagging()
        new = await bench.create(pod("b"))

        async def names(**options: Any) -> list[str]:
            page = await reads.list(kinds.POD, "", ListOptions(**options))
            return [page.resource_version, *(obj.name for obj in page.items)]

        assert await names(resource_version="0") == [str(old), "a"]
        # The newest state comes from etcd.
        assert await names() == [str(new), "a", "b"]
        assert (await names(limit=1))[1:] == ["a"]
        with pytest.raises(StatusError) as caught:
            await names(resource_version=str(new))
        status = caught.value
        assert (status.code, status.reason, status.retry_after_seconds) == (504, "Timeout", 1)
        assert status.message == f"Timeout: Too large resource version: {new}, current: {old}"
        assert [(cause.reason, cause.message) for cause in status.causes] == [
            ("ResourceVersionTooLarge", "Too large resource version")
        ]
        # A watch from a later revision than the cache's shows nothing older than that.
        async with await reads.watch(kinds.POD, "", WatchOptions(resource_version=str(new))) as watcher:
            FAULTS.clear()
            await bench.create(pod("c"))
            assert [event.object.name for event in await take(watcher, 1)] == ["c"]
