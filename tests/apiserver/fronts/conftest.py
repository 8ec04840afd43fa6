"""One server with both fronts on an etcd of its own, in a thread; a namespace for each test."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.from_thread
import pytest

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits, WatchCache
from nominee.apiserver.fronts.grpc.front import ServerIdentity
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.process.server import ApiServer, Parts, ServerOptions, Serving
from nominee.apiserver.registry.registry import Registry
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.api.kinds import NAMESPACE
from nominee.machinery.features.gates import Gates
from tests.apiserver.fronts.adapter import Api
from tests.apiserver.fronts.both import AheadClock, Both
from tests.apiserver.fronts.over_grpc import GrpcApi
from tests.apiserver.fronts.over_rest import RestApi
from tests.apiserver.rest.asgi import VERSION, Rest, front_over
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS


@asynccontextmanager
async def _serving(address: str, clock: AheadClock) -> AsyncIterator[tuple[Rest, ApiServer]]:
    made: list[Registry] = []

    async def make_parts(storage: EtcdStorage, cache: WatchCache) -> Parts:
        registry = Registry(
            storage,
            cache,
            Reads(storage, cache, fields_of),
            gates=Gates("apiserver", VERSION),
            clock=clock,
            rng=random.Random(1),
        )
        await bootstrap(registry)
        made.append(registry)
        return Parts(registry=registry)

    limits = CacheLimits(bookmark_seconds=0.1, wait_seconds=PATIENCE_SECONDS, history_per_kind=100)
    server = ApiServer(
        ServerOptions([address], compaction_seconds=0.0, limits=limits),
        make_parts,
        ServerIdentity(str(VERSION), {}),
        clock,
    )
    stopping, ready = anyio.Event(), anyio.Event()

    async def on_ready(_: Serving) -> None:
        ready.set()

    async with anyio.create_task_group() as group:
        group.start_soon(server.run, stopping, on_ready)
        with anyio.fail_after(PATIENCE_SECONDS):
            await ready.wait()
        yield front_over(made[0], clock), server
        stopping.set()


@pytest.fixture(scope="package")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    etcd = ThrowawayEtcd(tmp_path_factory.mktemp("fronts"))
    etcd.start()
    clock = AheadClock()
    try:
        with (
            anyio.from_thread.start_blocking_portal() as portal,
            portal.wrap_async_context_manager(_serving(etcd.address, clock)) as (rest, server),
        ):
            assert server.cache is not None
            grpc = GrpcApi(portal, server.address)
            yield Both(RestApi(portal, rest), grpc, server.cache, clock)
            grpc.close()
    finally:
        etcd.discard()


@pytest.fixture(params=["rest", "grpc"])
def api(request: pytest.FixtureRequest, both: Both) -> Api:
    """One front after the other."""
    return both.of(request.param)


@pytest.fixture
def impatient(both: Both) -> Iterator[None]:
    """Who asks for a revision of the future is not kept waiting."""
    cache, limits = both.cache, both.cache._limits
    cache._limits = replace(limits, wait_seconds=0.05)
    yield
    cache._limits = limits


@pytest.fixture
def space(both: Both) -> str:
    """Return a namespace that no other test uses."""
    both.count += 1
    name = f"space-{both.count}"
    made = both.grpc.create(NAMESPACE, {"metadata": {"name": name}})
    assert made.code == 200, made
    return name
