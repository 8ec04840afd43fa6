"""An API server with its etcd for tests of the client, and an object to write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from tests.support.cluster import Cluster
from tests.support.patience import PATIENCE_SECONDS


def config_map(name: str, **data: str) -> core.ConfigMap:
    """Return a ConfigMap of the namespace `default`."""
    made = core.ConfigMap()
    made.metadata.namespace, made.metadata.name = "default", name
    made.data.update(data)
    return made


@asynccontextmanager
async def running(cluster: Cluster, *, batches: bool = False) -> AsyncIterator[Client]:
    """Run etcd and the API server; yield a client. The whole block has a limit."""
    with anyio.fail_after(PATIENCE_SECONDS):
        await cluster.start("etcd", "apiserver")
        async with cluster.client(batches=batches) as client:
            yield client
