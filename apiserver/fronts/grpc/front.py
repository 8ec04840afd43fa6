"""The gRPC front (proto/nominee_api/v1/api.proto): each method is one request through the chain.

Objects pass as bytes. A watch event is serialized once for all watchers, as a WatchResponse of one event; the
events that wait for a client are sent as one message by concatenating such bytes, since protobuf concatenates
repeated fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from nominee.apiserver.chain.chain import chain
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.request import Verb
from nominee.apiserver.chain.results import Result
from nominee.apiserver.fronts.grpc.call_stream import ServedCallStream
from nominee.apiserver.fronts.grpc.metadata import CallMetadata
from nominee.apiserver.fronts.grpc.request import (
    CallInfo,
    Context,
    GrpcRequest,
    GrpcResult,
    ServerInfoRequest,
    WatchRequest,
)
from nominee.apiserver.objects.requests import RegistryAPI
from nominee.apiserver.storage.interface import Storage
from nominee.machinery.api import errors
from nominee.pb.nominee_api.v1 import api_pb2 as api

SERVICE = "nominee.api.v1.API"
_METHODS: Mapping[str, tuple[Verb, type[Message]]] = {
    "Get": ("get", api.GetRequest),
    "List": ("list", api.ListRequest),
    "Create": ("create", api.CreateRequest),
    "Update": ("update", api.UpdateRequest),
    "Patch": ("patch", api.PatchRequest),
    "Delete": ("delete", api.DeleteRequest),
    "DeleteCollection": ("deletecollection", api.DeleteCollectionRequest),
}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The parts of ServerInfo that do not change."""

    version: str
    feature_gates: Mapping[str, bool]


class GrpcFront:
    """The service over a registry."""

    def __init__(self, server: Dependencies, storage: Storage, identity: ServerIdentity) -> None:
        self._server = server
        self._storage = storage
        self._identity = identity
        self._chain = chain(server)
        self._streams: set[ServedCallStream] = set()
        self._draining = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of all methods, for a grpc.aio server."""
        handlers = {name: self._method(verb, message) for name, (verb, message) in _METHODS.items()}
        handlers["ServerInfo"] = grpc.unary_unary_rpc_method_handler(
            self._server_info, request_deserializer=None, response_serializer=_identity
        )
        handlers["Watch"] = grpc.unary_stream_rpc_method_handler(
            self._watch, request_deserializer=None, response_serializer=_identity
        )
        handlers["Calls"] = grpc.stream_stream_rpc_method_handler(
            self._calls, request_deserializer=None, response_serializer=_identity
        )
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _method(self, verb: Verb, message_type: type[Message]) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of a method with one response. The chain decodes the request."""

        async def run(data: bytes, context: Context) -> bytes:
            return await self._respond(GrpcRequest(verb, message_type, data, self._info_of(context)), context)

        return grpc.unary_unary_rpc_method_handler(
            run, request_deserializer=None, response_serializer=_identity
        )

    async def _watch(self, data: bytes, context: Context) -> None:
        await self._respond(WatchRequest(data, self._info_of(context), context.write), context)

    async def _server_info(self, data: bytes, context: Context) -> bytes:
        return await self._respond(ServerInfoRequest(data, self._info_of(context), self._info), context)

    async def _calls(self, _requests: object, context: Context) -> None:
        """Serve a stream of calls, of which each has the stream's metadata."""
        stream = ServedCallStream(
            context, CallMetadata(context.invocation_metadata), self._server, self._chain
        )
        self._streams.add(stream)
        if self._draining:
            stream.drain()
        try:
            await stream.serve()
        finally:
            self._streams.discard(stream)

    def drain(self) -> None:
        """End the streams of calls, each when its open calls have ended."""
        self._draining = True
        for stream in self._streams:
            stream.drain()

    def _info_of(self, context: Context) -> CallInfo:
        return CallInfo(CallMetadata(context.invocation_metadata), context.time_remaining, self._server)

    async def _respond(self, request: GrpcRequest, context: Context) -> bytes:
        """Run the chain, and return the response. Raises: AbortError for a Status."""
        await self._chain(request)
        if request.failure is not None:
            await errors.abort(context, request.failure)
        return request.response

    async def _info(self, registry: RegistryAPI) -> Result:
        """Return the ServerInfo; its revision is read from etcd."""
        response = api.ServerInfoResponse(
            version=self._identity.version,
            feature_gates=self._identity.feature_gates,
            revision=await self._storage.current_revision(),
        )
        return GrpcResult(response.SerializeToString())


def _identity(data: bytes) -> bytes:
    return data
