"""gRPC channels and servers; the simulation replaces them by its own network."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
import grpc.aio

from nominee.machinery.runtime.runtime import RUNTIME, Options, Transport


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


_GRPC = GrpcTransport()


def current() -> Transport:
    """Return the network of the running task."""
    runtime = RUNTIME.get()
    return _GRPC if runtime is None else runtime.transport
