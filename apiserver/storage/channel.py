"""The connection to etcd: one grpc.aio channel over all endpoints, and calls that survive a restart of etcd.

aetcd gives us the generated stubs only: its own client has one host, 4 MiB messages and unbounded queues.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio.lowlevel
import grpc
import grpc.aio
from aetcd import rpc

from apiserver.storage.interface import (
    Compacted,
    FutureRevision,
    LeaseNotFound,
    StorageError,
    StorageUnavailable,
    ValueTooLarge,
)
from machinery.client.credentials import DIRECTLY
from machinery.client.etcd_endpoints import endpoints as endpoints

# How long one operation may take, retries included; kube-apiserver's own requests have 60 s, but here a
# client rather hears 503 and tries again.
OPERATION_SECONDS_MAX = 15.0
_RETRY_PAUSE_SECONDS = 0.05
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Etcd refuses more than one ping in 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
    DIRECTLY,
)


_SOCKET, _SOCKET_LENGTH_MAX = "unix:", 107
# etcd's own limit, and beyond that its gRPC server's.
_TOO_LARGE = ("etcdserver: request is too large", "received message larger than max")
_TOO_LARGE_CODES = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)


class Call(Protocol):
    """A unary method of a stub."""

    def __call__(self, request: Any, *, timeout: float, wait_for_ready: bool) -> Any: ...


async def _resolved(endpoint: str) -> str:
    """`host:port` with an address for the host."""
    host, _, port = endpoint.rpartition(":")
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, int(port), family=2)
        host = str(found[0][4][0])
    return f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """What etcd's certificate is checked with, and what is shown to it: PEM, None for nothing to show."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)


def nearest(address: str, socket: str) -> str:
    """How to reach an etcd of this machine: by its socket, where the kernel takes the name."""
    return f"{_SOCKET}{socket}" if 0 < len(os.fsencode(socket)) <= _SOCKET_LENGTH_MAX else address


async def connect(servers: Sequence[str], tls: EtcdTls | None = None) -> grpc.aio.Channel:
    """A channel that uses all `servers` (`host:port`) and goes on with those that answer.

    With several of them each one's certificate must be good for the host of the first. A socket (`unix:PATH`)
    needs none: who may open it is the file's business.
    """
    if not servers:
        raise ValueError("no etcd endpoints")
    target, options = servers[0], _OPTIONS
    if len(servers) > 1:
        target = "ipv4:" + ",".join([await _resolved(server) for server in servers])
        options = (*options, ("grpc.lb_policy_name", "round_robin"))
    if tls is None or target.startswith(_SOCKET):
        return grpc.aio.insecure_channel(target, options=options)
    if len(servers) > 1:
        host = servers[0].rpartition(":")[0].strip("[]")
        options = (*options, ("grpc.ssl_target_name_override", host))
    credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    return grpc.aio.secure_channel(target, credentials, options=options)


def translate(error: grpc.aio.AioRpcError, revision: int = 0) -> StorageError:
    """Etcd's error as ours."""
    code, text = error.code(), error.details() or ""
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return FutureRevision(revision) if "future" in text else Compacted(revision)
    if code in _TOO_LARGE_CODES and any(problem in text for problem in _TOO_LARGE):
        return ValueTooLarge(text)
    if code is grpc.StatusCode.NOT_FOUND and "lease" in text:
        return LeaseNotFound(text)
    return StorageUnavailable(
        f"etcd: {text or code.name}", timed_out=code is grpc.StatusCode.DEADLINE_EXCEEDED, maybe_applied=True
    )


async def unary(call: Call, request: Any, *, timeout_seconds: float) -> Any:
    """One call as it is: AioRpcError passes through, and so does an anyio scope's cancellation."""
    try:
        return await call(request, timeout=timeout_seconds, wait_for_ready=True)
    except asyncio.CancelledError:
        # grpc raises a CancelledError of its own, which the cancelled scope would not know as its own.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise


class Caller:
    """Calls with retries while etcd is away, for at most `OPERATION_SECONDS_MAX`."""

    def __init__(
        self, channel: grpc.aio.Channel, monotonic: Callable[[], float], sleep: Callable[[float], Any]
    ) -> None:
        self.kv = rpc.KVStub(channel)
        self.lease = rpc.LeaseStub(channel)
        self._monotonic = monotonic
        self._sleep = sleep

    async def __call__(self, call: Call, request: Any, *, revision: int = 0) -> tuple[Any, bool]:
        """(the answer, whether an earlier attempt may have been carried out already).

        Only UNAVAILABLE is tried again. Raises StorageError; `revision` is for its text.
        """
        deadline = self._monotonic() + OPERATION_SECONDS_MAX
        uncertain = False
        while True:
            left = deadline - self._monotonic()
            try:
                return await unary(call, request, timeout_seconds=max(left, 0.001)), uncertain
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or left <= _RETRY_PAUSE_SECONDS:
                    raise translate(error, revision) from error
            uncertain = True
            await self._sleep(_RETRY_PAUSE_SECONDS)
