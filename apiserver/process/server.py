"""The API server: etcd, storage, watch cache, registry, gRPC front, REST front."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import grpc

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.cache.watch_cache import CacheLimits, WatchCache
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.metrics import RequestMetrics, ServerCollector
from nominee.apiserver.chain.problems import BODY_BYTES_MAX
from nominee.apiserver.flow_control import stored
from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.fronts.grpc.front import GrpcFront, ServerIdentity
from nominee.apiserver.fronts.open_files import connection_limits
from nominee.apiserver.objects.requests import RegistryAPI
from nominee.apiserver.objects.usage import UsageSource
from nominee.apiserver.process.access_setup import ServingCertificate
from nominee.apiserver.process.compaction import compact_regularly
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.api import errors
from nominee.machinery.client.calls import transport
from nominee.machinery.client.etcd_channel import EtcdTls, connect
from nominee.machinery.client.grpc_options import SERVER_OPTIONS
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

if TYPE_CHECKING:
    from nominee.apiserver.fronts.rest.server import RestServer

_log = logs.get()
# The time for calls in progress when the server stops.
GRACE_SECONDS = 1.0
# Watches count; a client that opens more gets RESOURCE_EXHAUSTED.
_CALLS_MAX = 20_000
_OWN_OPTIONS = ("grpc.max_receive_message_length", "grpc.max_allowed_incoming_connections")
# A request that is a little too large gets a Status; one that is much too large is not read.
_SERVER_OPTIONS = (
    *((name, value) for name, value in SERVER_OPTIONS if name not in _OWN_OPTIONS),
    ("grpc.max_receive_message_length", 2 * BODY_BYTES_MAX),
)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server; `etcd_servers` and `bind` are `host:port`, port 0 for any."""

    etcd_servers: Sequence[str]
    bind: str = "127.0.0.1:0"
    # 0 turns compaction off.
    compaction_seconds: float = 300.0
    limits: CacheLimits | None = None
    tls: ServingCertificate | None = None
    etcd_tls: EtcdTls | None = None


Task = Callable[[], Coroutine[Any, Any, None]]
"""A task that runs while the server serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a server that need its loaded cache."""

    registry: RegistryAPI
    access: Access = OPEN
    background: Sequence[Task] = ()
    usage: UsageSource | None = None


MakeParts = Callable[[EtcdStorage, WatchCache], Awaitable[Parts]]
"""Builds the parts and writes the objects that every cluster begins with, once the cache is loaded."""


@dataclass(frozen=True, slots=True)
class RestPart:
    """A REST front that listens, and its tasks."""

    front: RestServer
    background: Sequence[Task] = ()


MakeRest = Callable[[Dependencies], RestPart]


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that has begun to serve: its addresses, "" for none, and its metrics."""

    address: str
    rest_address: str
    metrics: ServerCollector


class ApiServer:
    """An API server. `run` serves until `stopping` is set, and reports its addresses to `on_ready`."""

    def __init__(
        self,
        options: ServerOptions,
        make_parts: MakeParts,
        identity: ServerIdentity,
        clock: Clock,
        *,
        make_rest: MakeRest | None = None,
        flow_control: FlowControl | None = None,
    ) -> None:
        self._options = options
        self._make_parts = make_parts
        self._identity = identity
        self._clock = clock
        self.cache: WatchCache | None = None
        self._make_rest = make_rest
        self._flow_control = flow_control
        self.address = ""

    async def run(self, stopping: anyio.Event, on_ready: Callable[[Serving], Awaitable[None]]) -> None:
        """Connect to etcd, load the cache and serve; return after an orderly stop."""
        async with AsyncExitStack() as stack:
            _log.info("connecting to etcd", servers=",".join(self._options.etcd_servers))
            channel = await connect(self._options.etcd_servers, self._options.etcd_tls)
            stack.push_async_callback(_closed, channel.close)
            storage = EtcdStorage(channel, self._clock, several_members=len(self._options.etcd_servers) > 1)
            version = Version.parse(self._identity.version)
            cache = self.cache = WatchCache(
                storage, channel, self._clock, limits=self._options.limits, version=version
            )
            async with anyio.create_task_group() as group:
                group.start_soon(cache.run)
                await self._serve(group, storage, cache, stopping, on_ready)
                group.cancel_scope.cancel()

    async def _serve(
        self,
        group: anyio.abc.TaskGroup,
        storage: EtcdStorage,
        cache: WatchCache,
        stopping: anyio.Event,
        on_ready: Callable[[Serving], Awaitable[None]],
    ) -> None:
        # Etcd may take long to answer, and the process may have to stop meanwhile.
        if not await _first(cache.wait_loaded, stopping.wait):
            return
        parts = await self._make_parts(storage, cache)
        flow_control = self._flow_control or FlowControl(self._clock)
        dependencies = Dependencies(
            parts.registry, parts.access, flow_control, self._clock, RequestMetrics(), parts.usage
        )
        front = GrpcFront(dependencies, storage, self._identity)
        metrics = ServerCollector(dependencies.metrics, cache, flow_control)
        connections = ("grpc.max_allowed_incoming_connections", connection_limits().grpc)
        server = transport.current().server((*_SERVER_OPTIONS, connections), calls_max=_CALLS_MAX)
        server.add_generic_rpc_handlers((front.handler(),))
        host = self._options.bind.rpartition(":")[0]
        if self._options.tls is None:
            port = server.add_insecure_port(self._options.bind)
        else:
            pair = (self._options.tls.key, self._options.tls.certificate)
            port = server.add_secure_port(self._options.bind, grpc.ssl_server_credentials([pair]))
        self.address = f"{host}:{port}"
        await server.start()
        try:
            if self._options.compaction_seconds > 0:
                group.start_soon(
                    compact_regularly, storage, cache, self._clock, self._options.compaction_seconds
                )
            rest = None if self._make_rest is None else self._make_rest(dependencies)
            if rest is not None:
                await group.start(rest.front.run)
            for run in (*parts.background, *(() if rest is None else rest.background)):
                group.start_soon(run)
            if self._flow_control is not None:
                self._flow_control.stored_of = stored.sizes(cache)
                group.start_soon(stored.run, self._flow_control, parts.registry, cache, self._clock)
            _log.info("Serving", address=self.address, revision=cache.revision)
            await on_ready(Serving(self.address, "" if rest is None else rest.front.address, metrics))
            await stopping.wait()
        finally:
            cache.end_watches(errors.service_unavailable("the API server is shutting down"))
            front.drain()
            await _closed(lambda: server.stop(GRACE_SECONDS))


async def _closed(close: Callable[[], Awaitable[None]]) -> None:
    """Close something within a limit, also when cancelled."""
    with anyio.move_on_after(GRACE_SECONDS + 2, shield=True):
        await close()


async def _first(wanted: Callable[[], Awaitable[None]], other: Callable[[], Awaitable[None]]) -> bool:
    """Wait for either; return whether it was `wanted`."""
    won = False

    async def wait(what: Callable[[], Awaitable[None]], wins: bool) -> None:
        nonlocal won
        await what()
        won = wins
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(wait, wanted, True)
        group.start_soon(wait, other, False)
    return won
