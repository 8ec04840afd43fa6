"""Charges to a quota on a real etcd, some of whose answers are lost."""

from __future__ import annotations

import anyio
import pytest

from nominee.apiserver.admission.chain import NAMES
from nominee.apiserver.objects.requests import Create, Get, Update
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.faults.call_faults import FAULTS
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.rules_player import registry_of
from tests.support.etcd import ThrowawayEtcd

_NAMESPACE, _COUNTED = "default", "configmaps"


def _config_map(name: str) -> core.ConfigMap:
    made = core.ConfigMap()
    made.metadata.name = name
    return made


async def _create_quota(registry: Registry) -> None:
    made = core.ResourceQuota()
    made.metadata.name = "quota"
    made.spec.hard[_COUNTED].string = "9"
    created = await registry.perform(Create(kinds.RESOURCE_QUOTA, _NAMESPACE, made))
    counted: core.ResourceQuota = copy_of(created.object.message)
    counted.status.hard[_COUNTED].string = "9"
    counted.status.used[_COUNTED].string = "0"
    await registry.perform(Update(kinds.RESOURCE_QUOTA, _NAMESPACE, "quota", "status", counted))


@pytest.mark.parametrize("fault", ["1*cut", "1*cut-response"])
async def test_objects_that_are_created_at_once_are_all_charged(etcd: ThrowawayEtcd, fault: str) -> None:
    """Their charges have the same bytes: one that etcd has not carried out must not count as the other."""
    async with running(etcd) as bench:
        registry = registry_of(bench, disabled=set(NAMES) - {"ResourceQuota"})
        await _create_quota(registry)
        FAULTS.put(fault, "etcd", "Txn", "resourcequotas")
        try:
            async with anyio.create_task_group() as group:
                for name in "ab":
                    request = Create(kinds.CONFIG_MAP, _NAMESPACE, _config_map(name))
                    group.start_soon(registry.perform, request)
        finally:
            FAULTS.clear()
        found = await registry.perform(Get(kinds.RESOURCE_QUOTA, _NAMESPACE, "quota"))
        assert found.message.status.used[_COUNTED].string == "2"
