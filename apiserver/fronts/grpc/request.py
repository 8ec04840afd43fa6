"""A gRPC request: decoded from api.proto's messages, and its response encoded."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import grpc.aio
from google.protobuf.message import DecodeError, Message

from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.access.impersonation import PREFIX as IMPERSONATE
from nominee.apiserver.access.impersonation import Headers
from nominee.apiserver.chain import problems, request_options
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.request import WRITES, ApiRequest, OwnHandler, Verb
from nominee.apiserver.chain.results import OwnResult, Result
from nominee.apiserver.chain.reviews import review
from nominee.apiserver.chain.watch_stream import send_batches
from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.fronts.grpc import bodies
from nominee.apiserver.fronts.grpc.metadata import CallMetadata
from nominee.apiserver.fronts.usage import pods
from nominee.apiserver.objects import served
from nominee.apiserver.objects.attributes import Attributes, selected
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.list_options import EXACT
from nominee.apiserver.objects.requests import (
    DeleteResult,
    ListOptions,
    ListPage,
    PatchKind,
    RegistryAPI,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from nominee.apiserver.objects.watcher import Watcher, WatchEvent
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import access_review, envelope, pod_metrics
from nominee.pb.nominee_api.v1 import api_pb2 as api

# The attributes of a gRPC request for authorization, and its width for flow control.

COLLECTION_VERBS = ("list", "watch", "deletecollection")
_LISTS = ("list", "deletecollection")


def attributes(verb: str, request: Any, kind: AnyKind | None) -> Attributes:
    """Return the attributes of a request; `kind` is None where the resource is not served."""
    target: api.Target = request.target
    name, subresource, fields = target.name, target.subresource, ""
    # A role in a namespace must not allow access to cluster-scoped objects. A request for a Namespace is in
    # that namespace.
    namespace = target.namespace if kind is None or kind.namespaced else ""
    if verb in COLLECTION_VERBS:
        # The response has what the selector selects: a name in the target must not allow access to the rest.
        fields = getattr(request, "list", request).field_selector
        name, subresource = selected(fields), ""
    else:
        if kind is kinds.NAMESPACE:
            namespace = name
        if verb == "create" and not subresource:
            # Authorizers do not see a new object's name.
            name = ""
    if kind is not None:
        return Attributes(
            verb, kind.plural, kind.group, kind.version, subresource, namespace, name, "", fields
        )
    return Attributes(
        verb, target.resource, target.group, target.version, subresource, namespace, name, "", fields
    )


def width(control: FlowControl, request: Any, asked: Attributes) -> Callable[[int], int] | None:
    """Return the function of a list's seats for `FlowControl.arrive`; None for one seat."""
    if asked.verb not in _LISTS or asked.field_selector.startswith("metadata.name="):
        return None
    listing = getattr(request, "list", request)
    version, limit = listing.resource_version, listing.limit
    exact = listing.resource_version_match == EXACT or (limit and version not in ("", "0"))
    return control.list_seats(
        asked,
        limit=limit,
        from_cache=not exact and not getattr(listing, "continue"),
        selects=bool(listing.field_selector or listing.label_selector),
    )


Context = grpc.aio.ServicerContext[Any, Any]
Write = Callable[[bytes], Awaitable[None]]
M = TypeVar("M", bound=Message)


class CallInfo(NamedTuple):
    """The parts of a call besides its message; `seconds_left` returns None without a deadline."""

    metadata: CallMetadata
    seconds_left: Callable[[], float | None]
    server: Dependencies


@dataclass(frozen=True, slots=True)
class GrpcResult(OwnResult):
    """A serialized response."""

    data: bytes


class GrpcRequest(ApiRequest):
    """A request by one of the methods. `response` or `failure` is set at its end; a watch has no response."""

    response = b""
    failure: StatusError | None = None
    _message: Any = None

    def __init__(self, verb: Verb, message_type: type[Message], data: bytes, call: CallInfo) -> None:
        super().__init__(verb)
        self._message_type = message_type
        self._data = data
        self._metadata = call.metadata
        self._seconds_left = call.seconds_left
        self._server = call.server

    # For the filters.

    def seconds_max(self) -> float | None:
        """Return None: the deadline of a call is gRPC's own."""
        return None

    def credentials(self) -> Credentials:
        found = self._metadata.matching("authorization")
        if len(found) > 1:
            raise errors.bad_request("more than one authorization in the request's metadata")
        return _credentials(found[0][1] if found else "")

    def impersonation(self) -> Headers:
        """Return the impersonated user of the metadata; none on a plain port, without authentication."""
        return () if self._server.access.authenticator is None else self._metadata.matching(IMPERSONATE)

    def user_agent(self) -> str:
        # gRPC adds its own behind the client's.
        agents = self._metadata.matching("user-agent")
        return agents[0][1].partition(" ")[0] if agents else ""

    def _decode(self) -> Any:
        """Return the request's message. Raises: StatusError 400, 413."""
        if len(self._data) > problems.BODY_BYTES_MAX and self.verb in WRITES:
            raise problems.too_large()
        try:
            return self._message_type.FromString(self._data)
        except DecodeError as error:
            name = self._message_type.DESCRIPTOR.full_name
            raise errors.bad_request(f"the request cannot be decoded as {name}: {error}") from None

    def resolve(self) -> Attributes:
        message = self._message = self._decode()
        target: api.Target = message.target
        kind = self.kind = served.by_resource(target.group, target.version, target.resource)
        self.namespace, self.name = target.namespace, target.name
        if self.verb not in COLLECTION_VERBS:
            self.subresource = target.subresource
        if kind is None and self.verb == "create" and _is_of(target, access_review.KIND):
            self.handler = self._review
        if kind is None and self.verb == "list" and _is_of(target, pod_metrics.KIND):
            self.handler = self._pod_metrics
        return attributes(self.verb, message, kind)

    def width(self, control: FlowControl) -> Callable[[int], int] | None:
        return width(control, self._message, self.attributes)

    def queue_seconds_max(self) -> float:
        """Return a quarter of the time that the call has."""
        remaining = self._seconds_left()
        return math.inf if remaining is None else remaining / 4

    def prepare(self) -> None:
        """Do nothing: there is one form of response."""

    async def _review(self, registry: RegistryAPI) -> Result:
        """Answer a SubjectAccessReview, which controllers create; other reviews are for clients of REST."""
        return await review(self, access_review.KIND, self._server.access, self._server.clock)

    async def _pod_metrics(self, registry: RegistryAPI) -> Result:
        """List the usage of pods, which the horizontal pod autoscaler reads. Raises: StatusError 404."""
        source, options = self._server.usage, replace(self.list_options(), resource_version="0")
        if source is None:
            raise problems.not_served()
        rows = await pods(registry, source, self.namespace, options)
        items = [envelope.wrap(pod_metrics.KIND, row.SerializeToString()) for row in rows]
        return GrpcResult(api.ListResponse(items=items).SerializeToString())

    # For the handlers.

    def resource_version(self) -> str:
        version: str = self._message.resource_version
        return version

    def list_options(self) -> ListOptions:
        request: api.ListRequest = self._message if self.verb == "list" else self._message.list
        return ListOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            resource_version=request.resource_version,
            resource_version_match=request.resource_version_match,
            limit=request.limit,
            # A field named as a Python keyword.
            continue_token=getattr(request, "continue"),
        )

    def watch_options(self) -> WatchOptions:
        request: api.WatchRequest = self._message
        initial = request.send_initial_events if request.HasField("send_initial_events") else None
        request_options.check_initial_events(initial, request.resource_version_match)
        return WatchOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            resource_version=request.resource_version,
            allow_bookmarks=request.allow_bookmarks,
            timeout_seconds=max(request.timeout_seconds, 0),
            send_initial_events=initial,
        )

    def write_options(self, kind: str) -> WriteOptions:
        options: api.WriteOptions = self._message.options
        validation, manager = options.field_validation, options.field_manager
        request_options.check_field_validation(validation, kind)
        return WriteOptions(
            dry_run=options.dry_run,
            field_manager=manager,
            force=options.force if options.HasField("force") else None,
            field_validation=validation,
            warn=True,
            imported=options.imported,
            user_agent="" if manager else self.user_agent(),
            origin=self.origin(),
        )

    async def delete_options(self) -> meta.DeleteOptions:
        return bodies.delete_options(self._message.options)

    async def body(self, expected: Kind[M]) -> M:
        return bodies.decode(expected, self._message.body)

    def patch_kind(self) -> PatchKind:
        try:
            return PatchKind(self._message.type)
        except ValueError:
            raise errors.bad_request(f"unknown patch type {self._message.type}") from None

    async def patch(self) -> bytes:
        data: bytes = self._message.patch
        return data

    # The response.

    async def respond(self, result: Result) -> None:
        self.code = 200
        self.response = _encode(result)

    async def stream(self, watcher: Watcher) -> None:
        raise TypeError(f"a {self.verb} has one response")

    async def fail(self, error: StatusError) -> None:
        self.code = error.code
        self.failure = error


@lru_cache(1024)
def _credentials(authorization: str) -> Credentials:
    """Return the credentials of a call, which are the same for all calls of a client."""
    return Credentials(authorization=authorization)


class WatchRequest(GrpcRequest):
    """A watch, with the function that sends its responses."""

    def __init__(self, data: bytes, call: CallInfo, write: Write) -> None:
        super().__init__("watch", api.WatchRequest, data, call)
        self._write = write

    async def stream(self, watcher: Watcher) -> None:
        self.code = 200
        write = self._write
        # The watch stands: everything written from now on is sent.
        await write(b"")

        async def send(batch: list[WatchEvent]) -> None:
            await write(b"".join(map(frame_of, batch)))

        try:
            await send_batches(watcher, self._message.target.resource, send)
        except StatusError as error:
            await write(error_frame(error))


class ServerInfoRequest(GrpcRequest):
    """A request for the server's version, gates and revision: for authorization it is GET of /version."""

    def __init__(self, data: bytes, call: CallInfo, handler: OwnHandler) -> None:
        super().__init__("get", api.ServerInfoRequest, data, call)
        self.handler = handler

    def resolve(self) -> Attributes:
        self._decode()
        return Attributes("get", path="/version")


def _is_of(target: api.Target, kind: AnyKind) -> bool:
    """Report whether a request is about a kind that is not stored."""
    return (target.group, target.version, target.resource) == (kind.group, kind.version, kind.plural)


def _encode(result: Result) -> bytes:
    """Return the message of a result."""
    if isinstance(result, WriteResult):
        return api.Object(body=result.object.data, warnings=result.warnings).SerializeToString()
    if isinstance(result, CachedObject):
        return api.Object(body=result.data).SerializeToString()
    if isinstance(result, ListPage):
        return _page(result)
    if isinstance(result, DeleteResult):
        return api.DeleteResponse(
            body=result.object.data, deleted=result.deleted, warnings=result.warnings
        ).SerializeToString()
    if isinstance(result, GrpcResult):
        return result.data
    raise TypeError(f"{type(result).__name__} has no gRPC form")


def _page(page: ListPage) -> bytes:
    response = api.ListResponse(
        warnings=page.warnings,
        items=[item.data for item in page.items],
        resource_version=page.resource_version,
        remaining_item_count=page.remaining,
        **{"continue": page.continue_token},
    )
    return response.SerializeToString()


def frame_of(event: WatchEvent) -> bytes:
    """Return a WatchResponse with this one event, which is serialized once."""
    frame = event.frame
    if not frame:
        frame = event.frame = api.WatchResponse(
            events=[api.WatchEvent(type=event.type.name, revision=event.revision, body=event.object.data)]
        ).SerializeToString()
    return frame


def error_frame(error: StatusError) -> bytes:
    """Return a WatchResponse that ends a watch."""
    return api.WatchResponse(
        events=[api.WatchEvent(type=api.WatchEvent.ERROR, error=error.to_message().SerializeToString())]
    ).SerializeToString()
