"""The gRPC front (proto/nominee_api/v1/api.proto): requests in, the registry's answers and statuses out.

Objects pass as bytes. A watch event is serialized once, whoever watches: a WatchResponse of one event; what
waits for a client is sent as one message by putting such bytes behind each other, since protobuf adds up
repeated fields.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message
from nominee_api.v1 import api_pb2 as api

from apiserver import bodies, request_options, served
from apiserver.access.access import OPEN, Access, named
from apiserver.access.attributes import Attributes
from apiserver.access.authentication import Credentials
from apiserver.access.impersonation import PREFIX as IMPERSONATE
from apiserver.access.user import ADMIN, CURRENT
from apiserver.cached_object import CachedObject
from apiserver.flow_control.controller import Asked, FlowControl, Ticket
from apiserver.list_options import EXACT
from apiserver.metrics import RequestLabels, RequestMetrics
from apiserver.registry import scale
from apiserver.registry.collection import delete_collection, is_deletable
from apiserver.requests import ListOptions, ListPage, PatchKind, RegistryAPI, WatchOptions, WriteOptions
from apiserver.storage.interface import Storage, StorageError
from apiserver.storage.status import to_status
from apiserver.watcher import Watcher, WatchEvent
from machinery import errors, failpoints, kinds, logs
from machinery.clock import Clock
from machinery.errors import StatusError
from machinery.kinds import Kind
from machinery.pb import meta
from machinery.wire import envelope, presence

BODY_BYTES_MAX = 3 << 20
"""Of a request that writes, as of a REST request's body."""
SERVICE = "nominee.api.v1.API"
GATHER_SECONDS = 0.002
_BEFORE_WRITE = failpoints.declare("apiserver.write.before")
_AFTER_WRITE = failpoints.declare("apiserver.write.after")
"""The write is in etcd, and the client does not know it yet."""
_BEFORE_SEND = failpoints.declare("apiserver.watch.send")

_Request = TypeVar("_Request", bound="_Targeted")
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_Context = grpc.aio.ServicerContext[Any, Any]
_CONTEXT: ContextVar[_Context | None] = ContextVar("grpc_context", default=None)
_log = logs.get()

# What a connection breaks down to when the process stops: clients try again elsewhere or later.
_ASKS = {
    "GET": "get",
    "LIST": "list",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "DELETECOLLECTION": "deletecollection",
}
_OF_COLLECTIONS = ("list", "watch", "deletecollection")
_STOPPING = "the API server is shutting down"


class _Targeted(Protocol):
    """A request about a kind."""

    @property
    def target(self) -> api.Target: ...

    def ByteSize(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What ServerInfo tells besides the revision."""

    version: str
    feature_gates: Mapping[str, bool]


def frame_of(event: WatchEvent) -> bytes:
    """A WatchResponse with this one event, serialized once."""
    frame = event.frame
    if not frame:
        frame = event.frame = api.WatchResponse(
            events=[api.WatchEvent(type=event.type.name, revision=event.revision, body=event.object.data)]
        ).SerializeToString()
    return frame


def error_frame(error: StatusError) -> bytes:
    """A WatchResponse that ends a watch."""
    return api.WatchResponse(
        events=[api.WatchEvent(type=api.WatchEvent.ERROR, error=error.to_message().SerializeToString())]
    ).SerializeToString()


class GrpcFront:
    """The service over a registry."""

    def __init__(
        self,
        registry: RegistryAPI,
        storage: Storage,
        identity: ServerIdentity,
        clock: Clock,
        flow_control: FlowControl | None = None,
        access: Access = OPEN,
    ) -> None:
        self._registry = registry
        self._access = access
        self._storage = storage
        self._identity = identity
        self._clock = clock
        self.flow_control = flow_control or FlowControl(clock)
        self.metrics = RequestMetrics()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a grpc.aio server is given."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Get": self._unary("GET", self._get, api.GetRequest),
                "List": self._unary("LIST", self._list, api.ListRequest),
                "Create": self._unary("POST", self._create, api.CreateRequest),
                "Update": self._unary("PUT", self._update, api.UpdateRequest),
                "Patch": self._unary("PATCH", self._patch, api.PatchRequest),
                "Delete": self._unary("DELETE", self._delete, api.DeleteRequest),
                "DeleteCollection": self._unary(
                    "DELETECOLLECTION", self._delete_collection, api.DeleteCollectionRequest
                ),
                "ServerInfo": grpc.unary_unary_rpc_method_handler(
                    self._server_info,
                    request_deserializer=api.ServerInfoRequest.FromString,
                    response_serializer=_as_is,
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch,
                    request_deserializer=api.WatchRequest.FromString,
                    response_serializer=_as_is,
                ),
            },
        )

    def _unary(
        self, verb: str, method: Callable[[_Request, Kind[Any]], Awaitable[bytes]], request_type: Any
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """A method for one kind: looked up, timed, counted, its errors made statuses."""
        writes = verb not in ("GET", "LIST")
        asks = _ASKS[verb]

        async def run(request: _Request) -> bytes:
            target = request.target
            self._authorize(asks, request)
            kind = _kind(target)
            if not writes:
                return await method(request, kind)
            if request.ByteSize() > BODY_BYTES_MAX:
                raise errors.request_too_large(f"limit is {BODY_BYTES_MAX}")
            named = f"{target.namespace}/{target.name}"
            await _BEFORE_WRITE.hit(verb=verb, resource=kind.plural, object=named)
            answer = await method(request, kind)
            await _AFTER_WRITE.hit(verb=verb, resource=kind.plural, object=named)
            return answer

        async def handle(request: _Request, context: _Context) -> bytes:
            begun = self._clock.monotonic()
            answer = await self._passed(asks, request, context, run)
            code = answer.code if isinstance(answer, StatusError) else 200
            self.metrics.answered(_labels(verb, request.target), code, self._clock.monotonic() - begun)
            if isinstance(answer, StatusError):
                await _fail(context, answer)
            return answer

        return grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=request_type.FromString, response_serializer=_as_is
        )

    async def _passed(
        self, verb: str, request: Any, context: _Context, method: Callable[[Any], Awaitable[_Answer]]
    ) -> _Answer | StatusError:
        """The answer of a method past the door: who asks is known, and it has its seat."""
        _CONTEXT.set(context)
        try:
            self._admit(context)
        except StatusError as error:
            return error
        ticket = self._arrive(verb, request)
        try:
            return await _outcome(method if ticket.admitted else _in_turn(ticket, context, method), request)
        finally:
            ticket.leave()

    def _admit(self, context: _Context) -> None:
        """Finds out who asks: by metadata named as REST's headers, `authorization` and `impersonate-*`."""
        if self._access.authenticator is None:
            # Nobody has to say who they are, and is not asked.
            CURRENT.set(ADMIN)
            return
        authorization, others = "", []
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = str(value)
            elif key.startswith(IMPERSONATE):
                others.append((key, str(value)))
        CURRENT.set(self._access.admit(Credentials(authorization=authorization), others))

    def _authorize(self, verb: str, request: Any) -> None:
        """403 where the user may not do that."""
        if self._access.open:
            return
        target = request.target
        name, subresource, fields = target.name, target.subresource, ""
        kind = served.by_resource(target.group, target.version, target.resource)
        # What is in no namespace must not be opened by what somebody may do in one. A request about a
        # namespace is in it.
        namespace = target.namespace if kind is None or kind.namespaced else ""
        if kind is kinds.NAMESPACE and verb not in _OF_COLLECTIONS:
            namespace = name
        if verb in _OF_COLLECTIONS:
            # What is answered is what is selected: a name beside that must not open the rest.
            fields = getattr(request, "list", request).field_selector
            name, subresource = named(fields), ""
        elif verb == "create" and not subresource:
            # A new object has a name only for who creates it.
            name = ""
        asked = Attributes(
            verb,
            target.resource,
            target.group,
            target.version,
            subresource,
            namespace,
            name,
            "",
            fields,
        )
        self._access.authorize(CURRENT.get(), asked)

    def _arrive(self, verb: str, request: Any) -> Ticket:
        """A request's place among all others."""
        target = request.target
        listing = getattr(request, "list", request)
        resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
        asked = Asked(verb, target.group, resource, target.namespace)
        width = None
        if verb in ("list", "deletecollection") and not listing.field_selector.startswith("metadata.name="):
            version, limit = listing.resource_version, listing.limit
            exact = listing.resource_version_match == EXACT or (limit and version not in ("", "0"))
            width = self.flow_control.list_seats(
                asked,
                limit=limit,
                from_cache=not exact and not getattr(listing, "continue"),
                selects=bool(listing.field_selector or listing.label_selector),
            )
        return self.flow_control.arrive(CURRENT.get(), asked, width)

    async def _get(self, request: api.GetRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        if _scales(target, kind):
            found = await self._registry.get(kind, target.namespace, target.name)
            return _scale(scale.of(found.message))
        found = await self._registry.get(
            kind,
            target.namespace,
            target.name,
            target.subresource,
            resource_version=request.resource_version,
        )
        return _object(found)

    async def _list(self, request: api.ListRequest, kind: Kind[Any]) -> bytes:
        page = await self._registry.list(kind, request.target.namespace, _list_options(request))
        return _page(page)

    async def _create(self, request: api.CreateRequest, kind: Kind[Any]) -> bytes:
        target, warnings = request.target, list[str]()
        options = _options(request.options, "CreateOptions", warnings)
        body = bodies.decode(kind, target.subresource, request.body)
        made = await self._registry.create(
            kind, target.namespace, target.name, target.subresource, body, options
        )
        return _object(made, warnings)

    async def _update(self, request: api.UpdateRequest, kind: Kind[Any]) -> bytes:
        target, warnings = request.target, list[str]()
        options = _options(request.options, "UpdateOptions", warnings)
        body = bodies.decode(kind, target.subresource, request.body)
        if _scales(target, kind):
            scaled = await scale.put(self._registry, kind, target.namespace, target.name, body, options)
            return _scale(scaled)
        changed = await self._registry.update(
            kind, target.namespace, target.name, target.subresource, body, options
        )
        return _object(changed, warnings)

    async def _patch(self, request: api.PatchRequest, kind: Kind[Any]) -> bytes:
        target, warnings = request.target, list[str]()
        try:
            patch_kind = PatchKind(request.type)
        except ValueError:
            raise errors.bad_request(f"unknown patch type {request.type}") from None
        options = _options(request.options, "PatchOptions", warnings)
        if _scales(target, kind):
            scaled = await scale.patch(
                self._registry, kind, target.namespace, target.name, patch_kind, request.patch, options
            )
            return _scale(scaled)
        changed = await self._registry.patch(
            kind, target.namespace, target.name, target.subresource, patch_kind, request.patch, options
        )
        return _object(changed, warnings)

    async def _delete(self, request: api.DeleteRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        if target.subresource:
            raise errors.method_not_allowed(kind, "delete")
        options = _delete_options(request.options)
        result = await self._registry.delete(kind, target.namespace, target.name, options)
        return api.DeleteResponse(body=result.object.data, deleted=result.deleted).SerializeToString()

    async def _delete_collection(self, request: api.DeleteCollectionRequest, kind: Kind[Any]) -> bytes:
        listing = _list_options(request.list)
        options = _delete_options(request.options)
        if not is_deletable(kind, request.target.namespace):
            raise errors.method_not_allowed(kind, "delete collection")
        deleted = await delete_collection(self._registry, kind, request.target.namespace, listing, options)
        return _page(deleted)

    async def _server_info(self, request: api.ServerInfoRequest, context: _Context) -> bytes:
        async def read(_: api.ServerInfoRequest) -> int:
            self._admit(context)
            self._access.authorize(CURRENT.get(), Attributes("get", path="/version"))
            return await self._storage.current_revision()

        revision = await _outcome(read, request)
        if isinstance(revision, StatusError):
            await _fail(context, revision)
        return api.ServerInfoResponse(
            version=self._identity.version,
            feature_gates=self._identity.feature_gates,
            revision=revision,
        ).SerializeToString()

    async def _watch(self, request: api.WatchRequest, context: _Context) -> None:
        initial = request.send_initial_events if request.HasField("send_initial_events") else None
        options = WatchOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            resource_version=request.resource_version,
            allow_bookmarks=request.allow_bookmarks,
            timeout_seconds=max(request.timeout_seconds, 0),
            send_initial_events=initial,
        )

        async def begin(_: api.WatchRequest) -> Watcher:
            self._authorize("watch", request)
            request_options.check_initial_events(initial, request.resource_version_match)
            return await self._registry.watch(_kind(request.target), request.target.namespace, options)

        # Once it stands, a watch holds no seat.
        watcher = await self._passed("watch", request, context, begin)
        if isinstance(watcher, StatusError):
            await _fail(context, watcher)
        labels = _labels("WATCH", request.target)
        self.metrics.watching(labels, 1)
        try:
            async with watcher:
                await self._send(watcher, request.target.resource, context)
        finally:
            self.metrics.watching(labels, -1)

    async def _send(self, watcher: Watcher, resource: str, context: _Context) -> None:
        # The watch stands: whatever is written from now on will be told.
        await context.write(b"")
        try:
            async for batch in watcher:
                await _BEFORE_SEND.hit(resource=resource)
                await context.write(b"".join(map(frame_of, batch)))
                # An event after a silence goes at once; those behind it gather, which makes one message of
                # several under load: a message costs both ends more than its events do.
                await self._clock.sleep(GATHER_SECONDS)
        except StatusError as error:
            await context.write(error_frame(error))


def _in_turn(
    ticket: Ticket, context: _Context, method: Callable[[_Asked], Awaitable[_Answer]]
) -> Callable[[_Asked], Awaitable[_Answer]]:
    """The same, when it is this request's turn."""

    async def waiting(request: _Asked) -> _Answer:
        remaining = context.time_remaining()
        await ticket.wait(remaining / 4 if remaining is not None else math.inf)
        return await method(request)

    return waiting


def _as_is(data: bytes) -> bytes:
    return data


async def _outcome(method: Callable[[_Asked], Awaitable[_Answer]], request: _Asked) -> _Answer | StatusError:
    """What `method` answers, or as a status what it raises."""
    try:
        return await method(request)
    except StatusError as error:
        return error
    except StorageError as error:
        return to_status(error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # The client has left, or the server stops: nobody is there to be answered.
            raise
        return errors.service_unavailable(_STOPPING)
    except Exception as error:  # noqa: BLE001  # a bug of ours is the client's 500, and the server goes on
        _log.exception("a request failed", request=type(request).__name__)
        return errors.internal(f"{type(error).__name__}: {error}")


async def _fail(context: _Context, failure: StatusError) -> NoReturn:
    await errors.abort(context, failure)


def _kind(target: api.Target) -> Kind[Any]:
    kind = served.by_resource(target.group, target.version, target.resource)
    if kind is None:
        raise errors.unknown_resource()
    return kind


def _labels(verb: str, target: api.Target) -> RequestLabels:
    kind = served.by_resource(target.group, target.version, target.resource)
    if kind is None:
        # Whatever a client makes up is counted as one.
        return RequestLabels(verb, "", "", "", "")
    subresource = target.subresource if target.subresource in kind.subresources else ""
    return RequestLabels(verb, kind.group, kind.version, kind.plural, subresource)


def _object(found: CachedObject, warnings: Sequence[str] = ()) -> bytes:
    return api.Object(body=found.data, warnings=warnings).SerializeToString()


def _scales(target: api.Target, kind: Kind[Any]) -> bool:
    """Whether a request is about a workload's Scale."""
    return target.subresource == "scale" and "scale" in kind.subresources


def _scale(made: Message) -> bytes:
    """A Scale in its envelope."""
    presence.fill(made)
    body = envelope.wrap(scale.KIND, made.SerializeToString(deterministic=True))
    return api.Object(body=body).SerializeToString()


def _delete_options(data: bytes) -> meta.DeleteOptions:
    options = bodies.delete_options(data)
    request_options.check_dry_run(options.dryRun, "DeleteOptions")
    return options


def _list_options(request: api.ListRequest) -> ListOptions:
    return ListOptions(
        label_selector=request.label_selector,
        field_selector=request.field_selector,
        resource_version=request.resource_version,
        resource_version_match=request.resource_version_match,
        limit=request.limit,
        # A field named as a Python keyword.
        continue_token=getattr(request, "continue"),
    )


def _page(page: ListPage) -> bytes:
    answer = api.ListResponse(
        items=[item.data for item in page.items],
        resource_version=page.resource_version,
        remaining_item_count=page.remaining,
        **{"continue": page.continue_token},
    )
    return answer.SerializeToString()


def _options(options: api.WriteOptions, kind: str, warnings: list[str]) -> WriteOptions:
    request_options.check_field_validation(options.field_validation, kind)
    return WriteOptions(
        dry_run=options.dry_run,
        field_manager=options.field_manager,
        force=options.force,
        field_validation=options.field_validation,
        warn=warnings.append,
        agent=_agent,
    )


def _agent() -> str:
    """The client's user agent, as `machinery.client` sets it; gRPC adds its own behind a blank."""
    context = _CONTEXT.get()
    for key, value in (context.invocation_metadata() or ()) if context is not None else ():
        if key == "user-agent":
            return str(value).partition(" ")[0]
    return ""
