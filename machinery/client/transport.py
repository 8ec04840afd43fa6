"""gRPC channels and servers; the simulation replaces them by its own network."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

import grpc
import grpc.aio

Options = Sequence[tuple[str, int | str]]


class Transport(Protocol):
    """A network with gRPC channels and servers."""

    def channel(
        self, target: str, credentials: grpc.ChannelCredentials | None, options: Options
    ) -> grpc.aio.Channel:
        """Return a channel to a target, not encrypted without credentials."""
        ...

    def server(
        self,
        options: Options,
        *,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        calls_max: int | None = None,
    ) -> grpc.aio.Server:
        """Return a server that is not started yet."""
        ...


class GrpcTransport:
    """gRPC over TCP and Unix sockets."""

    def channel(
        self, target: str, credentials: grpc.ChannelCredentials | None, options: Options
    ) -> grpc.aio.Channel:
        if credentials is None:
            return grpc.aio.insecure_channel(target, options=options)
        return grpc.aio.secure_channel(target, credentials, options=options)

    def server(
        self,
        options: Options,
        *,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        calls_max: int | None = None,
    ) -> grpc.aio.Server:
        return grpc.aio.server(interceptors=interceptors, options=options, maximum_concurrent_rpcs=calls_max)


_GRPC: Transport = GrpcTransport()
TRANSPORT: ContextVar[Transport] = ContextVar("transport", default=_GRPC)
"""The network of the running task; only the simulation sets it."""


def current() -> Transport:
    """Return the network of the running task."""
    return TRANSPORT.get()
