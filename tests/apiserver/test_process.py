"""The API server as a process: start, options, kill -9 under writes."""

from __future__ import annotations

import anyio

from machinery import kinds
from machinery.client import Client
from machinery.pb import core
from machinery.run_files import RunFile
from tests.support.cluster import Cluster

LIMIT_SECONDS = 60.0


def pod(name: str, **labels: str) -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.metadata.labels.update(labels)
    container = made.spec.containers.add()
    container.name, container.image = "c", "i"
    return made


async def test_create_get_list_watch_bind_delete(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        assert {n.metadata.name for n in (await client.list(kinds.NAMESPACE)).items} == {
            "default",
            "kube-system",
            "kube-public",
            "kube-node-lease",
        }
        batches = client.watch_batches(kinds.POD, resource_version="")
        assert await anext(batches) == []
        created = await client.create(pod("a"))
        assert created.spec.priority == 0
        assert created.metadata.uid
        await client.bind("default", "a", "n1")
        assert (await client.get(kinds.POD, "a", "default")).spec.nodeName == "n1"
        seen = [event.type for event in await anext(batches)]
        while len(seen) < 2:
            seen += [event.type for event in await anext(batches)]
        assert seen == ["ADDED", "MODIFIED"]
        await client.delete(kinds.POD, "a", "default", grace_period_seconds=0)
        await batches.aclose()
    assert await cluster.stop("apiserver") == 0
