"""API servers that share an etcd give each address and port once; what one leaves behind is found again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from nominee.apiserver.registry.services import addresses
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

SERVERS = 2
SERVICES = 40
"""Of each server, at once."""
CREATIONS_AT_ONCE = 10


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[list[Cluster]]:
    made = [Cluster(tmp_path / f"server-{number}") for number in range(SERVERS)]
    yield made
    for each in reversed(made):
        each.close()


@asynccontextmanager
async def running(clusters: Sequence[Cluster]) -> AsyncIterator[list[Client]]:
    """Etcd with the first API server, and the others on the same etcd; a client of each."""
    first, *others = clusters
    await first.start("etcd", "apiserver")
    for other in others:
        other.arguments("apiserver", "--etcd-servers", first.run_file("etcd").grpc)
        await other.start("apiserver")
    async with clusters[0].client() as one, clusters[1].client() as two:
        yield [one, two]


def service(name: str, kind: str = "NodePort") -> core.Service:
    made = core.Service()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.spec.type = kind
    made.spec.ports.add(port=80, protocol="TCP")
    return made


async def each_once(client: Client) -> list[core.Service]:
    """The Services, whose addresses and ports are all different and accounted for."""
    services = (await client.list(kinds.SERVICE)).items
    given = [each.spec.clusterIP for each in services]
    ports = [port.nodePort for each in services for port in each.spec.ports if port.nodePort]
    assert len(set(given)) == len(given), "an address was given twice"
    assert len(set(ports)) == len(ports), "a port was given twice"
    owners = {
        each.metadata.name: (each.spec.parentRef.namespace, each.spec.parentRef.name)
        for each in (await client.list(kinds.IP_ADDRESS)).items
        if addresses.has_labels(each)
    }
    for each in services:
        assert owners[each.spec.clusterIP] == (each.metadata.namespace, each.metadata.name)
    return services


async def test_services_are_created_at_once_on_two_servers(clusters: list[Cluster]) -> None:
    async with running(clusters) as clients:
        limit = anyio.Semaphore(CREATIONS_AT_ONCE)

        async def create(client: Client, name: str) -> None:
            async with limit:
                await client.create(service(name))

        async with anyio.create_task_group() as group:
            for number, client in enumerate(clients):
                for index in range(SERVICES):
                    group.start_soon(create, client, f"s{number}-{index}")
        made = [each for each in await each_once(clients[0]) if each.metadata.name != "kubernetes"]
        assert len(made) == SERVERS * SERVICES

        # The same address asked for on both servers at once: one of them has it.
        outcomes: list[StatusError | None] = []

        async def ask(client: Client, name: str) -> None:
            wanted = service(name, "ClusterIP")
            wanted.spec.clusterIP = "10.0.0.9"
            outcomes.append(await failure(client.create(wanted)))

        async with anyio.create_task_group() as group:
            for number, client in enumerate(clients):
                group.start_soon(ask, client, f"asks-{number}")
        (refused,) = [each for each in outcomes if each is not None]
        assert "provided IP is already allocated" in refused.message

        # A Service that is refused after that gives back what was taken for it.
        before = {each.metadata.name for each in (await clients[0].list(kinds.IP_ADDRESS)).items}
        unnamed = service("unnamed")
        unnamed.spec.ports.add(port=81)
        refusal = await failure(clients[0].create(unnamed))
        assert refusal is not None
        assert "spec.ports[0].name: Required value" in refusal.message
        assert {each.metadata.name for each in (await clients[0].list(kinds.IP_ADDRESS)).items} == before

        # What is deleted on one server is given back for both.
        for number, each in enumerate(made):
            await clients[number % SERVERS].delete(kinds.SERVICE, each.metadata.name, "default")
        left = {each.metadata.name for each in (await clients[1].list(kinds.IP_ADDRESS)).items}
        assert left == {"10.0.0.1", "10.0.0.9"}


async def test_a_range_that_a_client_adds_is_used(clusters: list[Cluster]) -> None:
    async with running(clusters) as clients:
        cidr = await clients[0].get(kinds.SERVICE_CIDR, "kubernetes", "")
        assert list(cidr.spec.cidrs) == ["10.0.0.0/24"]
        condition = cidr.status.conditions[0]
        assert (condition.type, condition.status) == ("Ready", "True")
        assert condition.message == "Kubernetes default Service CIDR is ready"
        added = kinds.SERVICE_CIDR.message()
        added.metadata.name = "more"
        added.spec.cidrs.append("10.7.0.0/28")
        await clients[0].create(added)
        wanted = service("there", "ClusterIP")
        wanted.spec.clusterIP = "10.7.0.3"

        def is_created(error: StatusError | None) -> bool:
            # Until the other server has seen the range it refuses the address, for this reason only.
            assert error is None or "does not match the current range" in error.message
            return error is None

        await eventually(lambda: failure(clients[1].create(wanted)), is_created)


@pytest.mark.parametrize("point", ["apiserver.services.allocated", "apiserver.services.release"])
async def test_a_server_that_ends_between_two_writes_gives_nothing_twice(
    clusters: list[Cluster], point: str
) -> None:
    first, _ = clusters
    async with running(clusters) as clients:
        kept = await clients[0].create(service("kept"))
        first.failpoint("apiserver", point, "crash")
        creating = point.endswith("allocated")
        assert await failure(
            clients[0].create(service("lost"))
            if creating
            else clients[0].delete(kinds.SERVICE, "kept", "default")
        )
        await first.exited("apiserver")
        # What it had taken is not given to another Service.
        taken = (await clients[1].list(kinds.IP_ADDRESS)).items
        assert len(taken) == len((await clients[1].list(kinds.SERVICE)).items) + 1
        for index in range(20):
            await clients[1].create(service(f"other-{index}"))
        again = service("again")
        again.spec.ports[0].nodePort = kept.spec.ports[0].nodePort
        with pytest.raises(StatusError, match="provided port is already allocated"):
            await clients[1].create(again)
        await each_once(clients[1])
        await first.start("apiserver")
        async with first.client() as client:
            await eventually_served(client)
            await client.create(service("later"))
            await each_once(client)


async def eventually_served(client: Client) -> None:
    def is_served(error: StatusError | None) -> bool:
        assert error is None or errors.is_retryable(error)
        return error is None

    await eventually(lambda: failure(client.get(kinds.NAMESPACE, "default", "")), is_served)


async def failure(call: Awaitable[object]) -> StatusError | None:
    """The Status with which a call fails, None where it succeeds."""
    try:
        await call
    except StatusError as error:
        return error
    return None


async def test_what_is_missing_is_repaired_at_the_start(clusters: list[Cluster]) -> None:
    """As for Services of a time before IPAddresses."""
    first, _ = clusters
    async with running(clusters) as clients:
        made = await clients[0].create(service("old"))
        await clients[0].delete(kinds.IP_ADDRESS, made.spec.clusterIP, "")
        first.kill("apiserver")
        await first.start("apiserver")
        async with first.client() as client:

            async def addresses_of_services() -> set[str]:
                return {each.metadata.name for each in (await client.list(kinds.IP_ADDRESS)).items}

            # The server repairs beside requests.
            await eventually(addresses_of_services, lambda found: made.spec.clusterIP in found)
            assert made.spec.clusterIP in first.log("apiserver")
            await each_once(client)
