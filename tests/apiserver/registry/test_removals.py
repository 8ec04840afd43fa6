"""The update that removes the last finalizer deletes its object, and no other one of its name."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Create, Delete, Get, Update, WriteOptions
from nominee.apiserver.registry.store import Store
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, meta
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.test_registry import started
from tests.support.etcd import ThrowawayEtcd

NAMESPACE, NAME = "default", "c"


def config_map(*finalizers: str) -> core.ConfigMap:
    found = core.ConfigMap()
    found.metadata.name, found.metadata.namespace = NAME, NAMESPACE
    found.metadata.finalizers.extend(finalizers)
    return found


async def test_another_object_of_the_name_stays(etcd: ThrowawayEtcd, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        kind, delete = kinds.CONFIG_MAP, Store.delete

        async def create(obj: core.ConfigMap) -> None:
            await registry.perform(Create(kind, NAMESPACE, obj, WriteOptions()))

        async def delete_late(
            store: Store, *arguments: Any, at: CachedObject, **options: Any
        ) -> CachedObject:
            """Delete when another client has, and has created the object again."""
            monkeypatch.setattr(Store, "delete", delete)
            await bench.storage.delete(at.key, expected_revision=at.revision)
            await create(config_map())
            return await store.delete(*arguments, at=at, **options)

        await create(config_map("example.com/last"))
        await registry.perform(Delete(kind, NAMESPACE, NAME, meta.DeleteOptions()))
        marked = (await registry.perform(Get(kind, NAMESPACE, NAME))).message
        last = copy_of(marked)
        del last.metadata.finalizers[:]
        monkeypatch.setattr(Store, "delete", delete_late)
        with pytest.raises(StatusError) as raised:
            await registry.perform(Update(kind, NAMESPACE, NAME, "", last))
        assert errors.is_conflict(raised.value)
        stays = (await registry.perform(Get(kind, NAMESPACE, NAME))).message
        assert stays.metadata.uid != marked.metadata.uid
