"""The Service `kubernetes`: created, reconciled, and the address of the server."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.requests import Create, Delete, Get, List, ListOptions
from nominee.apiserver.process import own_service
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.process.server_leases import PREFIX, Endpoint, ServerLeases
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import discovery, meta
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.support.patience import PATIENCE_SECONDS

OWN = (kinds.SERVICE, kinds.ENDPOINTS, kinds.ENDPOINT_SLICE)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
async def registry(storage: MemoryStorage, clock: FakeClock) -> Registry:
    cache: Any = MemoryCache(storage)
    made = Registry(
        storage,
        cache,
        Reads(storage, cache, fields_of),
        gates=Gates("apiserver", Version(1, 36)),
        clock=clock,
        rng=random.Random(1),
    )
    await bootstrap(made)
    return made


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@asynccontextmanager
async def kept(
    registry: Registry, clock: FakeClock, *addresses: str, leases: ServerLeases | None = None
) -> AsyncIterator[None]:
    """Until each server's keeper sleeps for the first time, at least."""
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number, address in enumerate(addresses, start=1):
                tasks.start_soon(own_service.run, registry, address, clock, leases)
                await clock.wait_for_sleepers(number)
            yield
            tasks.cancel_scope.cancel()


async def read(registry: Registry, kind: Kind[Any]) -> Any:
    return (await registry.perform(Get(kind, "default", "kubernetes"))).message


async def test_it_is_created_and_reconciled(registry: Registry, clock: FakeClock) -> None:
    async with kept(registry, clock, "192.0.2.7:6443"):
        service, endpoints, found = [await read(registry, kind) for kind in OWN]
        assert (service.spec.clusterIP, service.spec.ports[0].targetPort.intVal) == ("10.0.0.1", 6443)
        assert endpoints.subsets[0].addresses[0].ip == "192.0.2.7"
        assert (found.endpoints[0].addresses[0], found.ports[0].port) == ("192.0.2.7", 6443)
        for kind in OWN:
            await registry.perform(Delete(kind, "default", "kubernetes", meta.DeleteOptions()))
        await clock.advance(own_service.AGAIN_SECONDS)
        await clock.wait_for_sleepers(1)
        for kind in OWN:
            await read(registry, kind)


async def test_a_server_that_moves_says_so_and_nothing_else_is_touched(
    registry: Registry, clock: FakeClock
) -> None:
    async with kept(registry, clock, "192.0.2.7:6443"):
        before = [await read(registry, kind) for kind in OWN]
        await clock.advance(own_service.AGAIN_SECONDS)
        await clock.wait_for_sleepers(1)
        assert [await read(registry, kind) for kind in OWN] == before
    async with kept(registry, clock, "192.0.2.8:7443"):
        service, _, found = [await read(registry, kind) for kind in OWN]
        assert service.spec.ports[0].targetPort.intVal == found.ports[0].port == 7443
        assert service.spec.clusterIP == "10.0.0.1"
        assert found.endpoints[0].addresses[0] == "192.0.2.8"


async def shown(registry: Registry) -> tuple[list[tuple[int, list[str]]], dict[str, tuple[int, list[str]]]]:
    """Return (port, addresses) of the Endpoints' subsets, and of the EndpointSlices by name."""
    subsets = (await read(registry, kinds.ENDPOINTS)).subsets
    slices = (
        await registry.perform(List(kinds.ENDPOINT_SLICE, "default", ListOptions(resource_version="0")))
    ).items
    return (
        [(each.ports[0].port, [address.ip for address in each.addresses]) for each in subsets],
        {
            each.name: (each.message.ports[0].port, [one.addresses[0] for one in each.message.endpoints])
            for each in slices
        },
    )


async def test_servers_with_one_port_are_in_one_slice(
    registry: Registry, storage: MemoryStorage, clock: FakeClock
) -> None:
    servers = ("192.0.2.8:6443", "192.0.2.7:6443")
    both = ["192.0.2.7", "192.0.2.8"]
    async with kept(registry, clock, *servers, leases=ServerLeases(storage)):
        assert await shown(registry) == ([(6443, both)], {"kubernetes": (6443, both)})


async def test_servers_that_differ_in_the_port_have_a_slice_each(
    registry: Registry, storage: MemoryStorage, clock: FakeClock
) -> None:
    first, second = (6443, ["192.0.2.7"]), (7443, ["192.0.2.7"])
    leases, other = ServerLeases(storage), Endpoint(7443, "192.0.2.7")
    await leases.renew([other])
    async with kept(registry, clock, "192.0.2.7:6443", leases=leases):
        assert await shown(registry) == ([first, second], {"kubernetes": first, "kubernetes-2": second})
        service = await read(registry, kinds.SERVICE)
        assert service.spec.ports[0].targetPort.intVal == 6443
        await leases.remove([other])
        await clock.advance(own_service.AGAIN_SECONDS)
        assert await shown(registry) == ([first], {"kubernetes": first})
    assert await shown(registry) == ([], {"kubernetes": (6443, [])})


async def test_the_only_server_removes_slices_of_earlier_ones(
    registry: Registry, storage: MemoryStorage, clock: FakeClock
) -> None:
    own = (6443, ["192.0.2.7"])
    left = discovery.EndpointSlice(addressType="IPv4")
    left.metadata.name, left.metadata.labels["kubernetes.io/service-name"] = "kubernetes-2", "kubernetes"
    await registry.perform(Create(kinds.ENDPOINT_SLICE, "default", left))
    async with kept(registry, clock, "192.0.2.7:6443"):
        assert await shown(registry) == ([own], {"kubernetes": own})
        assert not [key for key in storage.values if key.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("machine", "addresses"), [("192.0.2.9", ["192.0.2.9"]), ("", []), ("127.0.0.2", [])]
)
async def test_no_endpoint_is_on_loopback(
    registry: Registry,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    addresses: list[str],
) -> None:
    monkeypatch.setattr(own_service, "_of_machine", lambda: machine)
    async with kept(registry, clock, "127.0.0.1:6443"):
        found = await read(registry, kinds.ENDPOINT_SLICE)
        assert [each.addresses[0] for each in found.endpoints] == addresses


async def test_an_error_at_a_failpoint_is_no_end(registry: Registry, clock: FakeClock) -> None:
    point = "apiserver.services.allocated"
    failpoints.arm(point, '1*error("x")')
    try:
        async with kept(registry, clock, "192.0.2.7:6443"):
            found = failpoints.REGISTRY.get(point)
            assert found is not None
            assert found.fired == 1
            await clock.advance(own_service.AGAIN_SECONDS)
            await clock.wait_for_sleepers(1)
    finally:
        failpoints.arm(point, "off")


async def test_an_address_that_is_taken_is_no_end(registry: Registry, clock: FakeClock) -> None:
    other = kinds.SERVICE.message()
    other.metadata.name, other.spec.clusterIP = "other", "10.0.0.1"
    other.spec.ports.add(port=80)
    await registry.perform(Create(kinds.SERVICE, "default", other))
    async with kept(registry, clock, "192.0.2.7:6443"):
        with pytest.raises(StatusError, match="not found"):
            await read(registry, kinds.SERVICE)
        await registry.perform(Delete(kinds.SERVICE, "default", "other", meta.DeleteOptions()))
        await clock.advance(own_service.AGAIN_SECONDS)
        await clock.wait_for_sleepers(1)
        assert (await read(registry, kinds.SERVICE)).spec.clusterIP == "10.0.0.1"
