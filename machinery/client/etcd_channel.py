"""The connection to etcd: one grpc.aio channel over all endpoints, by TLS or a Unix socket."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc
import grpc.aio

from nominee.machinery.client.calls import transport
from nominee.machinery.client.credentials import DIRECTLY

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
        return transport.current().channel(target, None, options)
    if len(servers) > 1:
        host = servers[0].rpartition(":")[0].strip("[]")
        options = (*options, ("grpc.ssl_target_name_override", host))
    credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    return transport.current().channel(target, credentials, options)
