"""The connection to etcd: one grpc.aio channel over all endpoints, and calls that survive a restart of etcd.

Only the generated stubs of aetcd are used: its client has one host, 4 MiB messages and unbounded queues.
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

# The limit of one operation, retries included. kube-apiserver's requests have 60 s; here a client gets 503
# earlier and retries.
OPERATION_SECONDS_MAX = 15.0
_RETRY_PAUSE_SECONDS = 0.05
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # etcd refuses more than one ping in 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
    DIRECTLY,
)


_SOCKET, _SOCKET_LENGTH_MAX = "unix:", 107
# The errors of etcd's limit, and of its gRPC server's larger one.
_TOO_LARGE = ("etcdserver: request is too large", "received message larger than max")
_TOO_LARGE_CODES = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)


class Call(Protocol):
    """A unary method of a stub."""

    def __call__(self, request: Any, *, timeout: float, wait_for_ready: bool) -> Any: ...


async def _resolved(endpoint: str) -> str:
    """Return `host:port` with the host's address."""
    host, _, port = endpoint.rpartition(":")
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, int(port), family=2)
        host = str(found[0][4][0])
    return f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """The certificate authority of etcd, and the client certificate and key or None, in PEM."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)


def nearest(address: str, socket: str) -> str:
    """Return the address of an etcd on this machine: its Unix socket, unless the name is too long for one."""
    return f"{_SOCKET}{socket}" if 0 < len(os.fsencode(socket)) <= _SOCKET_LENGTH_MAX else address


async def connect(servers: Sequence[str], tls: EtcdTls | None = None) -> grpc.aio.Channel:
    """Return a channel to all `servers` (`host:port`), which uses those that answer.

    With several servers, each certificate must be valid for the host of the first. A Unix socket
    (`unix:PATH`) needs no TLS: file permissions protect it.

    Raises: ValueError without servers.
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
    """Return the StorageError of an etcd error."""
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
    """Make one call. AioRpcError and the cancellation of an anyio scope pass through."""
    try:
        return await call(request, timeout=timeout_seconds, wait_for_ready=True)
    except asyncio.CancelledError:
        # grpc raises a CancelledError of its own, which the cancelled scope would not know as its own.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise


class Caller:
    """Makes calls and retries them while etcd is unavailable, for at most `OPERATION_SECONDS_MAX`."""

    def __init__(
        self, channel: grpc.aio.Channel, monotonic: Callable[[], float], sleep: Callable[[float], Any]
    ) -> None:
        self.kv = rpc.KVStub(channel)
        self.lease = rpc.LeaseStub(channel)
        self._monotonic = monotonic
        self._sleep = sleep

    async def __call__(self, call: Call, request: Any, *, revision: int = 0) -> tuple[Any, bool]:
        """Return (the response, whether an earlier attempt may have been applied).

        Only UNAVAILABLE is retried. `revision` is for the error's text.

        Raises: StorageError.
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
