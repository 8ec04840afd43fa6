"""Several API servers: each has an endpoint of the Service `kubernetes` for as long as it lives."""

from __future__ import annotations

import pytest

from nominee.apiserver.process import own_service
from nominee.apiserver.process.server_leases import PREFIX, Endpoint, ServerLeases
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, connect
from nominee.machinery.wire import envelope
from tests.apiserver.registry.memory_storage import MemoryStorage
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

FIRST, SECOND = Endpoint(6443, "192.0.2.7"), Endpoint(7443, "192.0.2.7")
NAMES = ("apiserver-0", "apiserver-1")


async def test_a_lease_is_renewed_and_removed() -> None:
    storage = MemoryStorage()
    leases = ServerLeases(storage)
    assert await leases.live() == []
    await leases.renew([FIRST, SECOND])
    await leases.renew([FIRST])
    assert sorted(await leases.live()) == [FIRST, SECOND]
    stored = storage.values["/registry/masterleases/192.0.2.7:6443"]
    assert envelope.decode(kinds.ENDPOINTS, stored.data).metadata.generation == 2
    for _ in range(2):
        await leases.remove([FIRST])
    assert await leases.live() == [SECOND]


async def test_a_lease_of_upstreams_form_names_no_port() -> None:
    storage = MemoryStorage()
    lease = core.Endpoints()
    lease.subsets.add().addresses.add(ip="192.0.2.8")
    await storage.create(f"{PREFIX}192.0.2.8", envelope.encode(lease))
    assert await ServerLeases(storage).live() == []


class Servers:
    """Two API servers on one etcd, and what the Service `kubernetes` shows of them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def show(self, *alive: str) -> None:
        """Wait until Service, Endpoints and EndpointSlices show these servers, the lowest port first."""
        ports = sorted(int(self.cluster.run_file(name).document["rest"].rpartition(":")[2]) for name in alive)
        async with await connect(self.cluster.directory, alive[0]) as client:
            await eventually(
                lambda: _shown(client), lambda shown: shown == (ports[0], ports, ports), explain=lambda: ports
            )
            slices = (await client.list(kinds.ENDPOINT_SLICE, "default")).items
            assert [each.metadata.name for each in slices] == ["kubernetes", "kubernetes-2"][: len(ports)]


async def _shown(client: Client) -> tuple[int, list[int], list[int]] | None:
    """Return the target port of the Service, and the ports of its Endpoints and EndpointSlices.

    A server serves before it has written them, as upstream's does: None while one of them does not exist.
    """
    try:
        service = await client.get(kinds.SERVICE, "kubernetes", "default")
        endpoints = await client.get(kinds.ENDPOINTS, "kubernetes", "default")
    except StatusError as error:
        if not errors.is_not_found(error):
            raise
        return None
    slices = (await client.list(kinds.ENDPOINT_SLICE, "default")).items
    return (
        service.spec.ports[0].targetPort.intVal,
        [subset.ports[0].port for subset in endpoints.subsets if subset.addresses],
        [each.ports[0].port for each in slices if each.endpoints],
    )


@pytest.fixture
async def servers(cluster: Cluster) -> Servers:
    if not own_service._of_machine():
        pytest.skip("this machine has no address but loopback, and a Service can have no endpoint there")
    for name in NAMES:
        cluster.arguments(name, "--apiserver-count=2", "--disable-admission-plugins=ServiceAccount")
    await cluster.start("etcd", *NAMES)
    return Servers(cluster)


async def test_a_server_that_stops_withdraws(servers: Servers) -> None:
    await servers.show(*NAMES)
    assert await servers.cluster.stop("apiserver-0") == 0
    await servers.show("apiserver-1")
    await servers.cluster.start("apiserver-0")
    await servers.show(*NAMES)


@pytest.mark.slow  # the lease of a killed server lasts 15 s
async def test_a_server_that_is_killed_goes_with_its_lease(servers: Servers) -> None:
    await servers.show(*NAMES)
    servers.cluster.kill("apiserver-1")
    await servers.show("apiserver-0")
