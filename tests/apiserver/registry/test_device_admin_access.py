"""Administrators' access to devices, and selectors, through the registry on a real etcd."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.objects.requests import Create, Get
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.test_registry import own, put, started
from tests.support.devices import claim, device_class, request, template
from tests.support.etcd import ThrowawayEtcd

LABEL = "resource.kubernetes.io/admin-access"
ADMIN = request(adminAccess=True)
FORBIDDEN = (
    "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the "
    f"`{LABEL}: true` label on the containing namespace"
)


async def made(registry: Registry, obj: Any) -> Any:
    kind = kinds.of(obj)
    return (await registry.perform(Create(kind, obj.metadata.namespace, obj))).object.message


async def test_admin_access_needs_the_namespaces_label_and_selectors_compile(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        for wanted in (claim("c", ADMIN), template("t", ADMIN)):
            with pytest.raises(StatusError) as raised:
                await made(registry, wanted)
            assert raised.value.code == 422
            assert FORBIDDEN in raised.value.message

        plain = own(await made(registry, claim("plain")))
        result = plain.status.allocation.devices.results.add(request="r", driver="d.example.com", pool="p")
        result.device, result.adminAccess = "x", True
        with pytest.raises(StatusError, match=r"results\[0\]\.adminAccess: Forbidden"):
            await put(registry, kinds.RESOURCE_CLAIM, plain, "status")

        namespace: core.Namespace = own((await registry.perform(Get(kinds.NAMESPACE, "", "default"))).message)
        namespace.metadata.labels[LABEL] = "true"
        await put(registry, kinds.NAMESPACE, namespace)
        await made(registry, claim("c", ADMIN))

        with pytest.raises(StatusError) as raised:
            await made(registry, device_class("broken", "device.bogus == 1"))
        assert (
            'spec.selectors[0].cel.expression: Invalid value: "device.bogus == 1": compilation failed: '
            "ERROR: <input>:1:7: undefined field 'bogus'"
        ) in raised.value.message
