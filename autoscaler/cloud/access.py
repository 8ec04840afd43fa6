"""Authorization of the cloud's clients, by client certificate as with upstream's providers.

All certificates of the cluster's authority pass the TLS handshake; the user name decides which methods a
client may call. Without certificates the port is not encrypted, and open to all clients.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

KUBELETS = "nominee:kubelets"
"""The user of the kubelet processes, which read the running instances."""
_MANAGERS = frozenset({"cluster-autoscaler", "kubernetes-admin"})
_READS = frozenset(
    {"NodeGroups", "NodeGroupNodes", "NodeGroupForNode", "NodeGroupTargetSize", "NodeGroupTemplateNodeInfo"}
)
_COMMON_NAME = "x509_common_name"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


@dataclass(frozen=True, slots=True)
class CloudTls:
    """The cloud's certificate and key, and the authority of its clients, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)
    client_authority: bytes

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials that require a client certificate."""
        pair = [(self.key, self.certificate)]
        return grpc.ssl_server_credentials(pair, self.client_authority, require_client_auth=True)


def may(user: str, method: str) -> bool:
    """Report whether a user may call a method of the external provider protocol."""
    return user in _MANAGERS or (user == KUBELETS and method in _READS)


class Guard(grpc.aio.ServerInterceptor):
    """Authorizes each call (with `secure`) before its request is decoded.

    A user without permission gets PERMISSION_DENIED, a request that is not protobuf INVALID_ARGUMENT.
    """

    def __init__(self, *, secure: bool) -> None:
        self._secure = secure

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        # grpc's stubs give every handler the type of a synchronous server's.
        respond = cast("Callable[[Message, _Context], Awaitable[Message]]", handler.unary_unary)
        decode = handler.request_deserializer
        assert decode is not None  # generated code has one for each method
        method = handler_call_details.method.rpartition("/")[2]

        async def guarded(data: bytes, context: _Context) -> Message:
            if self._secure:
                names = context.auth_context().get(_COMMON_NAME, ())
                user = next((name.decode("utf-8", "replace") for name in names), "")
                if not may(user, method):
                    problem = f'user "{user}" may not call {method}'
                    await context.abort(grpc.StatusCode.PERMISSION_DENIED, problem)
            try:
                request = decode(data)
            except DecodeError as error:
                problem = f"the request cannot be decoded: {error}"
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)
            return await respond(request, context)

        return grpc.unary_unary_rpc_method_handler(
            guarded, request_deserializer=None, response_serializer=handler.response_serializer
        )
