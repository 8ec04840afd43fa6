"""API servers of two versions, as processes, on one etcd, and a field that only one of them has."""

from __future__ import annotations

import http.client
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, connect
from tests.support.cluster import WAIT_SECONDS_MAX, Cluster
from tests.support.patience import PATIENCE_SECONDS
from tests.support.rest_client import RestClient

NEWER, OLDER = "apiserver-0", "apiserver-1"
GATE = "--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=true"
PATH = "/api/v1/nodes"
LABEL = {"metadata": {"labels": {"a": "b"}}}


@dataclass
class Reader:
    """Reads the node `n` over both fronts of one server, in every way that a client can."""

    name: str
    grpc: Client
    address: str

    async def policies(self) -> dict[str, bool]:
        """Return for each kind of read whether the node has the policy."""
        grpc, pages = self.grpc, [await self.grpc.list(kinds.NODE)]
        pages.append(await grpc.list(kinds.NODE, resource_version="0"))
        watch = grpc.watch(kinds.NODE, resource_version="0")
        async with aclosing(watch):
            with anyio.fail_after(PATIENCE_SECONDS):
                event = await anext(watch)
        found = {
            "gRPC get": (await grpc.get(kinds.NODE, "n")).spec.HasField("podPreemptionPolicy"),
            "gRPC list": pages[0].items[0].spec.HasField("podPreemptionPolicy"),
            "gRPC list from the cache": pages[1].items[0].spec.HasField("podPreemptionPolicy"),
            "gRPC watch": event.object.spec.HasField("podPreemptionPolicy"),
        }
        for name, query in (("get", "/n"), ("get from the cache", "/n?resourceVersion=0")):
            found[f"REST {name}"] = "podPreemptionPolicy" in (await self._first_line(query))["spec"]
        listed = await self._first_line("")
        found["REST list"] = "podPreemptionPolicy" in listed["items"][0]["spec"]
        watched = await self._first_line("?watch=true&resourceVersion=0")
        found["REST watch"] = "podPreemptionPolicy" in watched["object"]["spec"]
        return found

    async def _first_line(self, query: str) -> Any:
        return await anyio.to_thread.run_sync(self._read, query)

    def _read(self, query: str) -> Any:
        connection = http.client.HTTPConnection(self.address, timeout=WAIT_SECONDS_MAX)
        try:
            connection.request("GET", PATH + query, headers={"Accept": "application/json"})
            return json.loads(connection.getresponse().readline())
        finally:
            connection.close()


async def over_grpc(reader: Reader) -> None:
    await reader.grpc.patch(kinds.NODE, "n", "", LABEL)


async def over_rest(reader: Reader) -> None:
    await RestClient(reader.address).patch(kinds.NODE, "n", "", LABEL)


@pytest.mark.parametrize("write", [over_grpc, over_rest])
async def test_the_older_one_hides_a_field_and_a_write_of_it_drops_the_field(
    cluster: Cluster, write: Callable[[Reader], Awaitable[None]]
) -> None:
    options = ("--apiserver-count=2", "--disable-admission-plugins=ServiceAccount")
    cluster.arguments(NEWER, *options, "--emulated-version=1.37", GATE, module="apiserver")
    cluster.arguments(OLDER, *options, "--emulated-version=1.36", module="apiserver")
    await cluster.start("etcd", NEWER, OLDER)
    async with (
        await connect(cluster.directory, NEWER) as newer_client,
        await connect(cluster.directory, OLDER) as older_client,
    ):
        newer, older = (
            Reader(name, client, str(cluster.run_file(name).document["rest"]))
            for name, client in ((NEWER, newer_client), (OLDER, older_client))
        )
        node = core.Node()
        node.metadata.name = "n"
        node.spec.podPreemptionPolicy.disableResizePreemption.append("example.com/a")
        made = await newer_client.create(node)
        # A read of the newest state waits for the cache, which the reads and watches from it then have.
        assert set((await newer.policies()).values()) == {True}
        assert set((await older.policies()).values()) == {False}

        watch = older_client.watch(kinds.NODE, resource_version=made.metadata.resourceVersion)
        async with aclosing(watch):
            await newer_client.patch(kinds.NODE, "n", "", {"metadata": {"labels": {"c": "d"}}})
            with anyio.fail_after(PATIENCE_SECONDS):
                event = await anext(watch)
            assert event.object.metadata.labels["c"] == "d"
            assert not event.object.spec.HasField("podPreemptionPolicy")
        assert set((await newer.policies()).values()) == {True}

        await write(older)
        assert set((await newer.policies()).values()) == {False}
