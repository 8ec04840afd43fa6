"""The API server: lagging caches, lost answers of etcd, and two writers of one object."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from aetcd import rpc

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits, WatchCache
from nominee.apiserver.kinds.core.pods.resize import _take_resources
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.kinds.table import fields_of, strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListOptions
from nominee.apiserver.registry.deletions import deletion, namespace_deletion
from nominee.apiserver.registry.pods import budget
from nominee.apiserver.registry.pods.binding import bind
from nominee.apiserver.registry.pods.eviction import EvictionRequest
from nominee.apiserver.registry.store import Preconditions, Store
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.apiserver.storage.revision import RevisionReader
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.features import gates as versions
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock, SystemClock, to_time
from tests.mutations.proofs.memory_storage import LaggingCache, MemoryStorage

ENVIRONMENT = Environment(Gates("apiserver", versions.DEFAULT), to_time(1_700_000_000.0))


def pod(name: str = "p", *, uid: str = "u", **labels: str) -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, "default", uid
    made.metadata.labels.update(labels)
    return made


def store_of(storage: MemoryStorage, *cached: CachedObject) -> Store:
    watch_cache = cache_of(storage)
    return Store(storage, watch_cache.objects, LaggingCache(*cached) if cached else None)


def cache_of(storage: MemoryStorage, **limits: Any) -> WatchCache:
    return WatchCache(storage, cast("Any", None), SystemClock(), limits=CacheLimits(**limits))


async def test_a_creation_that_was_applied_before_its_answer_was_lost_succeeds() -> None:
    class Answers:
        """etcd after it came back: the key is there, with the bytes of the first attempt."""

        kv = SimpleNamespace(Txn=None)
        revision = 5

        async def __call__(self, send: object, request: rpc.TxnRequest) -> tuple[rpc.TxnResponse, bool]:
            put = request.success[0].request_put
            pair = rpc.KeyValue(key=put.key, value=put.value, mod_revision=7)
            found = rpc.ResponseOp(response_range=rpc.RangeResponse(kvs=[pair]))
            return rpc.TxnResponse(succeeded=False, responses=[found]), True

    async with await connect(["127.0.0.1:1"]) as channel:
        storage = EtcdStorage(channel, FakeClock())
        storage._call = cast("Any", Answers())
        assert await storage.create("/registry/pods/default/p", b"one") == 7


async def test_a_write_without_a_change_is_compared_with_etcd() -> None:
    storage = MemoryStorage()
    cached = storage.put(pod(a="1"))
    storage.put(pod(a="2"))

    async def mutate(current: CachedObject) -> core.Pod:
        return pod(a="1")

    written = await store_of(storage, cached).update(kinds.POD, "default", "p", mutate)
    newest = await store_of(storage).read(kinds.POD, "default", "p")
    assert newest.message.metadata.labels["a"] == "1"
    assert written.revision == newest.revision


async def test_a_refusal_for_a_cached_object_is_not_final() -> None:
    storage = MemoryStorage()
    cached = storage.put(pod(a="1"))
    newest = storage.put(pod(a="2"))

    async def mutate(current: CachedObject) -> core.Pod:
        return pod(a="3")

    read = Preconditions(resource_version=str(newest.revision))
    written = await store_of(storage, cached).update(kinds.POD, "default", "p", mutate, preconditions=read)
    assert written.message.metadata.labels["a"] == "3"


async def test_a_watch_from_before_the_list_of_the_cache_is_expired() -> None:
    storage = MemoryStorage()
    before = storage.revision
    storage.put(pod())
    cache = cache_of(storage)
    await cache._load()
    with pytest.raises(StatusError) as caught:
        cache.watch(kinds.POD, since_revision=before)
    assert errors.is_gone(caught.value)


async def test_a_watch_that_has_ended_has_no_watcher() -> None:
    cache = cache_of(MemoryStorage())
    await cache._load()
    cache.watch(kinds.POD).close()
    assert cache.watchers == 0


async def test_a_consistent_list_has_what_a_lagging_cache_has_not() -> None:
    storage = MemoryStorage()
    cache = cache_of(storage, wait_seconds=0.01)
    await cache._load()
    storage.put(pod())
    page = await Reads(storage, cache, fields_of).list(kinds.POD, "", ListOptions())
    assert [found.name for found in page.items] == ["p"]


async def test_a_reader_of_the_revision_does_not_share_a_read_that_began_before() -> None:
    answers, answered = [1, 2], anyio.Event()

    async def read() -> int:
        answer = answers.pop(0)
        await answered.wait()
        return answer

    reader, found = RevisionReader(read), list[int]()

    async def current() -> None:
        found.append(await reader.current())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(current)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(current)
        await anyio.wait_all_tasks_blocked()
        answered.set()
    assert found == [1, 2]


async def test_a_pod_that_was_created_again_is_not_bound() -> None:
    storage = MemoryStorage()
    storage.put(pod(uid="second"))
    binding = core.Binding()
    binding.metadata.name, binding.metadata.uid, binding.target.name = "p", "first", "n1"
    with pytest.raises(StatusError) as caught:
        await bind(store_of(storage), "default", "p", binding, ENVIRONMENT)
    assert errors.is_conflict(caught.value)


def disruption_budget(allowed: int, *, generation: int = 1) -> policy.PodDisruptionBudget:
    made = policy.PodDisruptionBudget()
    made.metadata.name, made.metadata.namespace = "b", "default"
    made.metadata.uid, made.metadata.generation = "b", generation
    made.status.observedGeneration, made.status.disruptionsAllowed = 1, allowed
    return made


async def test_two_evictions_are_counted_twice() -> None:
    storage = MemoryStorage()
    before = storage.put(disruption_budget(2))
    storage.put(disruption_budget(1))
    request = EvictionRequest(
        store_of(storage), strategy_of(kinds.POD), cast("Any", None), FakeClock(), ENVIRONMENT, "default", "p"
    )
    with pytest.raises(StatusError) as caught:
        await request._decrement(before, dry_run=False)
    assert errors.is_conflict(caught.value)


def test_an_object_that_was_marked_before_a_crash_is_removed() -> None:
    marked, options = pod(), meta.DeleteOptions()
    marked.metadata.deletionTimestamp.seconds = 1_699_999_999
    marked.metadata.deletionGracePeriodSeconds = 0
    mode = deletion.begin(strategy_of(kinds.POD), marked, options, ENVIRONMENT)
    assert mode is deletion.Mode.NOW


def test_a_budget_of_a_newer_generation_is_still_being_processed() -> None:
    with pytest.raises(StatusError) as caught:
        budget.decremented(disruption_budget(1, generation=2), "p", ENVIRONMENT.now)
    assert caught.value.code == 429


async def test_a_namespace_with_content_stays_when_it_is_deleted_again() -> None:
    storage = MemoryStorage()
    namespace = core.Namespace()
    namespace.metadata.name = "n"
    namespace.metadata.deletionTimestamp.seconds = 1
    namespace.spec.finalizers.append("kubernetes")
    storage.put(namespace)
    options, strategy = meta.DeleteOptions(), strategy_of(kinds.NAMESPACE)
    _, gone = await namespace_deletion.delete(store_of(storage), strategy, "n", options, ENVIRONMENT)
    assert not gone
    assert storage.values


def test_a_resize_changes_all_containers() -> None:
    old = core.Pod()
    for name in ("a", "b"):
        old.spec.containers.add(name=name).resources.requests["cpu"].string = "1"
    new = copy_of(old)
    for container in new.spec.containers:
        container.resources.requests["cpu"].string = "2"
    _take_resources(old.spec.containers, new.spec.containers)
    assert [one.resources.requests["cpu"].string for one in old.spec.containers] == ["2", "2"]
