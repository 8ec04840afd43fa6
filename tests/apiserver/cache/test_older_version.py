"""The cache of a server of an older version: no read shows a field of a newer version; etcd keeps it."""

from __future__ import annotations

import pytest

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListOptions, WatchOptions
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import envelope
from tests.apiserver.cache.test_watch_cache import Bench, pod, running, take
from tests.support.etcd import ThrowawayEtcd

OLDER, NEWER = Version(1, 33), Version(1, 34)
"""Pod.spec.hostnameOverride came in 1.34."""


def newer_pod(name: str) -> core.Pod:
    made = pod(name)
    made.spec.hostnameOverride = "h"
    return made


def hostname(obj: CachedObject) -> str | None:
    """Return the field, which must be the same in the message and in the bytes that are sent."""
    spec = obj.message.spec
    shown = spec.hostnameOverride if spec.HasField("hostnameOverride") else None
    sent = envelope.decode(kinds.POD, obj.data)
    assert sent == obj.message
    assert sent.metadata.resourceVersion == str(obj.revision)
    return shown


async def stored_hostname(bench: Bench, name: str) -> str:
    value = await bench.storage.get(kinds.POD.key("default", name))
    assert value is not None
    return envelope.decode(kinds.POD, value.data).spec.hostnameOverride


@pytest.mark.parametrize(("version", "shown"), [(OLDER, None), (NEWER, "h")], ids=str)
async def test_reads(etcd: ThrowawayEtcd, version: Version, shown: str | None) -> None:
    async with running(etcd, version=version) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        revision = await bench.create(newer_pod("a"))
        await bench.caught_up()
        found = [
            await reads.get(kinds.POD, "default", "a", resource_version=resource_version)
            for resource_version in ("", "0", str(revision))
        ]
        await bench.create(newer_pod("b"))
        await bench.caught_up()
        # From the cache; and at an older revision, from etcd.
        options = ListOptions(resource_version=str(revision), resource_version_match="Exact")
        for page in (
            await reads.list(kinds.POD, "", ListOptions()),
            await reads.list(kinds.POD, "", options),
        ):
            found += page.items
        assert [hostname(obj) for obj in found if obj is not None] == [shown] * 6
        assert await stored_hostname(bench, "a") == "h"


@pytest.mark.parametrize(("version", "shown"), [(OLDER, None), (NEWER, "h")], ids=str)
async def test_watches(etcd: ThrowawayEtcd, version: Version, shown: str | None) -> None:
    limits = CacheLimits(history_per_kind=10)
    async with running(etcd, limits, version) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        first = await bench.create(newer_pod("a"))
        await bench.caught_up()
        present = await reads.watch(kinds.POD, "", WatchOptions(resource_version="0"))
        changed = newer_pod("a")
        changed.metadata.labels["a"] = "b"
        second = await bench.update(changed, first)
        await bench.delete(changed, second)
        await bench.caught_up()
        past = await reads.watch(kinds.POD, "", WatchOptions(resource_version=str(first)))
        events = [*await take(present, 3), *await take(past, 2)]
        assert [event.type.name for event in events] == ["ADDED", *["MODIFIED", "DELETED"] * 2]
        assert [hostname(event.object) for event in events] == [shown] * 5


async def test_the_objects_that_were_there_before(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, version=NEWER) as bench:
        await bench.create(newer_pod("a"))
    async with running(etcd, version=OLDER) as bench:
        cached = bench.cache.get(kinds.POD, "default", "a")
        assert cached is not None
        assert hostname(cached) is None
        assert await stored_hostname(bench, "a") == "h"


async def test_an_object_without_the_field_is_served_as_stored(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, version=OLDER) as bench:
        await bench.create(pod("a"))
        await bench.caught_up()
        cached = bench.cache.get(kinds.POD, "default", "a")
        assert cached is not None
        assert cached.data == envelope.with_resource_version(cached.stored, cached.revision)
