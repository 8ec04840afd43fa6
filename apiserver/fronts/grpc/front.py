"""The gRPC front (proto/nominee_api/v1/api.proto): requests in, the registry's answers and statuses out.

A request arrives as bytes and is decoded once its caller is authenticated. Objects pass as bytes. A watch
event is serialized once for all watchers: a WatchResponse of one event; what waits for a client is sent as
one message by putting such bytes behind each other, since protobuf adds up repeated fields.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from nominee_api.v1 import api_pb2 as api

from apiserver.access.access import OPEN, Access
from apiserver.access.attributes import CURRENT_ATTRIBUTES, Attributes
from apiserver.access.authentication import Credentials
from apiserver.access.impersonation import PREFIX as IMPERSONATE
from apiserver.access.user import ADMIN, CURRENT, User
from apiserver.chain import request_options
from apiserver.chain.metrics import RequestLabels, RequestMetrics
from apiserver.flow_control.controller import FlowControl
from apiserver.fronts.grpc import attributes as grpc_attributes
from apiserver.fronts.grpc import bodies
from apiserver.fronts.grpc import reviews as grpc_reviews
from apiserver.objects import served
from apiserver.objects.cached_object import CachedObject
from apiserver.objects.requests import (
    ListOptions,
    ListPage,
    PatchKind,
    RegistryAPI,
    WatchOptions,
    WriteOptions,
)
from apiserver.objects.watcher import Watcher, WatchEvent
from apiserver.registry.collection import delete_collection, is_deletable
from apiserver.storage.interface import Storage, StorageError
from apiserver.storage.status import to_status
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import meta
from machinery.runtime import failpoints, logs
from machinery.runtime.clock import Clock

BODY_BYTES_MAX = 3 << 20
"""Of a request that writes, as of a REST request's body."""
SERVICE = "nominee.api.v1.API"
GATHER_SECONDS = 0.002
_BEFORE_WRITE = failpoints.declare("apiserver.write.before")
_AFTER_WRITE = failpoints.declare("apiserver.write.after")
"""The write is in etcd, and the client does not know it yet."""
_BEFORE_SEND = failpoints.declare("apiserver.watch.send")

_Request = TypeVar("_Request", bound="_Targeted")
_Decoded = TypeVar("_Decoded", bound=Message)
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
_STOPPING = "the API server is shutting down"


class _Targeted(Protocol):
    """A request about a kind."""

    @property
    def target(self) -> api.Target: ...


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
                    self._server_info, request_deserializer=None, response_serializer=_as_is
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch, request_deserializer=None, response_serializer=_as_is
                ),
            },
        )

    def _unary(
        self, verb: str, method: Callable[[_Request, Kind[Any]], Awaitable[bytes]], request_type: Any
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """A method for one kind: looked up, timed, counted, its errors made statuses."""
        writes = verb not in ("GET", "LIST")
        asks = _ASKS[verb]

        async def run(request: _Request, kind: Kind[Any]) -> bytes:
            if not writes:
                return await method(request, kind)
            named = f"{request.target.namespace}/{request.target.name}"
            await _BEFORE_WRITE.hit(verb=verb, resource=kind.plural, object=named)
            answer = await method(request, kind)
            await _AFTER_WRITE.hit(verb=verb, resource=kind.plural, object=named)
            return answer

        async def handle(data: bytes, context: _Context) -> bytes:
            begun = self._clock.monotonic()
            try:
                user, request = self._received(data, request_type, context, limited=writes)
            except StatusError as error:
                unknown = RequestLabels(verb, "", "", "", "")
                self.metrics.answered(unknown, error.code, self._clock.monotonic() - begun)
                await _fail(context, error)
            target = request.target
            kind = served.by_resource(target.group, target.version, target.resource)
            answer = await self._passed(user, asks, request, kind, context, run)
            code = answer.code if isinstance(answer, StatusError) else 200
            labels = grpc_attributes.labels(verb, target, kind)
            self.metrics.answered(labels, code, self._clock.monotonic() - begun)
            if isinstance(answer, StatusError):
                await _fail(context, answer)
            return answer

        return grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=None, response_serializer=_as_is
        )

    def _received(
        self, data: bytes, request_type: type[_Decoded], context: _Context, *, limited: bool = False
    ) -> tuple[User, _Decoded]:
        """Authenticate the caller, and only then decode its request.

        Raises: StatusError 400, 401, 403, and 413 for a `limited` request that is too large.
        """
        _CONTEXT.set(context)
        user = self._admit(context)
        if limited and len(data) > BODY_BYTES_MAX:
            raise errors.request_too_large(f"limit is {BODY_BYTES_MAX}")
        try:
            return user, request_type.FromString(data)
        except DecodeError as error:
            name = request_type.DESCRIPTOR.full_name
            raise errors.bad_request(f"the request cannot be decoded as {name}: {error}") from None

    async def _passed(
        self,
        user: User,
        verb: str,
        request: Any,
        kind: Kind[Any] | None,
        context: _Context,
        method: Callable[[Any, Kind[Any]], Awaitable[_Answer]],
    ) -> _Answer | StatusError:
        """Return what a method answers to an authenticated user, in its turn and if it is allowed to."""
        asked = grpc_attributes.attributes(verb, request, kind)
        CURRENT_ATTRIBUTES.set(asked)
        width = grpc_attributes.width(self.flow_control, request, asked)
        ticket = self.flow_control.arrive(user, asked, width)

        async def served_in_turn() -> _Answer:
            if not ticket.admitted:
                remaining = context.time_remaining()
                await ticket.wait(remaining / 4 if remaining is not None else math.inf)
            self._access.authorize(user, asked)
            if kind is not None:
                return await method(request, kind)
            if isinstance(request, api.CreateRequest) and grpc_reviews.is_access_review(request.target):
                return cast("_Answer", grpc_reviews.answer(request, self._access, user))
            raise errors.unknown_resource()

        try:
            return await _outcome(served_in_turn, type(request))
        finally:
            ticket.leave()

    def _admit(self, context: _Context) -> User:
        """Authenticate by metadata named as REST's headers, `authorization` and `impersonate-*`.

        Raises: StatusError 400 for two of the first, 401, 403.
        """
        if self._access.authenticator is None:
            # Nobody has to say who they are, and is not asked.
            CURRENT.set(ADMIN)
            return ADMIN
        authorization: str | None = None
        others = []
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                if authorization is not None:
                    raise errors.bad_request("more than one authorization in the request's metadata")
                authorization = str(value)
            elif key.startswith(IMPERSONATE):
                others.append((key, str(value)))
        user = self._access.admit(Credentials(authorization=authorization or ""), others)
        CURRENT.set(user)
        return user

    async def _get(self, request: api.GetRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        if _scales(target, kind):
            return _object(await self._registry.get_scale(kind, target.namespace, target.name))
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
        target = request.target
        options = _options(request.options, "CreateOptions")
        body: Any = bodies.decode(kind, target.subresource, request.body)
        where = target.namespace, target.name
        match kind, target.subresource:
            case _, "":
                made = await self._registry.create(kind, target.namespace, body, options)
            case kinds.POD, "binding":
                made = await self._registry.bind(*where, body, options)
            case kinds.POD, "eviction":
                made = await self._registry.evict(*where, body, options)
            case kinds.SERVICE_ACCOUNT, "token":
                made = await self._registry.issue_token(*where, body)
            case _:
                raise errors.unknown_resource()
        return _object(made.object, made.warnings)

    async def _update(self, request: api.UpdateRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        options = _options(request.options, "UpdateOptions")
        body: Any = bodies.decode(kind, target.subresource, request.body)
        where = kind, target.namespace, target.name
        if _scales(target, kind):
            changed = await self._registry.update_scale(*where, body, options)
        else:
            changed = await self._registry.update(*where, target.subresource, body, options)
        return _object(changed.object, changed.warnings)

    async def _patch(self, request: api.PatchRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        try:
            patch_kind = PatchKind(request.type)
        except ValueError:
            raise errors.bad_request(f"unknown patch type {request.type}") from None
        options = _options(request.options, "PatchOptions")
        where, patch = (kind, target.namespace, target.name), request.patch
        if _scales(target, kind):
            changed = await self._registry.patch_scale(*where, patch_kind, patch, options)
        else:
            changed = await self._registry.patch(*where, target.subresource, patch_kind, patch, options)
        return _object(changed.object, changed.warnings)

    async def _delete(self, request: api.DeleteRequest, kind: Kind[Any]) -> bytes:
        target = request.target
        if target.subresource:
            raise errors.method_not_allowed(kind, "delete")
        options = _delete_options(request.options)
        result = await self._registry.delete(kind, target.namespace, target.name, options)
        return api.DeleteResponse(
            body=result.object.data,
            deleted=result.deleted,
            warnings=result.warnings,
        ).SerializeToString()

    async def _delete_collection(self, request: api.DeleteCollectionRequest, kind: Kind[Any]) -> bytes:
        listing = _list_options(request.list)
        options = _delete_options(request.options)
        if not is_deletable(kind, request.target.namespace):
            raise errors.method_not_allowed(kind, "delete collection")
        deleted = await delete_collection(self._registry, kind, request.target.namespace, listing, options)
        return _page(deleted)

    async def _server_info(self, data: bytes, context: _Context) -> bytes:
        async def read() -> int:
            user, _ = self._received(data, api.ServerInfoRequest, context)
            self._access.authorize(user, Attributes("get", path="/version"))
            return await self._storage.current_revision()

        revision = await _outcome(read, api.ServerInfoRequest)
        if isinstance(revision, StatusError):
            await _fail(context, revision)
        return api.ServerInfoResponse(
            version=self._identity.version,
            feature_gates=self._identity.feature_gates,
            revision=revision,
        ).SerializeToString()

    async def _watch(self, data: bytes, context: _Context) -> None:
        try:
            user, request = self._received(data, api.WatchRequest, context)
        except StatusError as error:
            await _fail(context, error)
        initial = request.send_initial_events if request.HasField("send_initial_events") else None
        options = WatchOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            resource_version=request.resource_version,
            allow_bookmarks=request.allow_bookmarks,
            timeout_seconds=max(request.timeout_seconds, 0),
            send_initial_events=initial,
        )

        target = request.target
        kind = served.by_resource(target.group, target.version, target.resource)

        async def begin(_: api.WatchRequest, kind: Kind[Any]) -> Watcher:
            request_options.check_initial_events(initial, request.resource_version_match)
            return await self._registry.watch(kind, target.namespace, options)

        # Once it stands, a watch holds no seat.
        watcher = await self._passed(user, "watch", request, kind, context, begin)
        if isinstance(watcher, StatusError):
            await _fail(context, watcher)
        labels = grpc_attributes.labels("WATCH", target, kind)
        self.metrics.watching(labels, 1)
        try:
            async with watcher:
                await self._send(watcher, target.resource, context)
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


def _as_is(data: bytes) -> bytes:
    return data


async def _outcome(
    method: Callable[[], Awaitable[_Answer]], request_type: type[Message]
) -> _Answer | StatusError:
    """What `method` answers, or as a status what it raises."""
    try:
        return await method()
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
        _log.exception("a request failed", request=request_type.__name__)
        return errors.internal(f"{type(error).__name__}: {error}")


async def _fail(context: _Context, failure: StatusError) -> NoReturn:
    await errors.abort(context, failure)


def _object(found: CachedObject, warnings: Sequence[str] = ()) -> bytes:
    return api.Object(body=found.data, warnings=warnings).SerializeToString()


def _scales(target: api.Target, kind: Kind[Any]) -> bool:
    """Whether a request is about a workload's Scale."""
    return target.subresource == "scale" and "scale" in kind.subresources


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
        warnings=page.warnings,
        items=[item.data for item in page.items],
        resource_version=page.resource_version,
        remaining_item_count=page.remaining,
        **{"continue": page.continue_token},
    )
    return answer.SerializeToString()


def _options(options: api.WriteOptions, kind: str) -> WriteOptions:
    request_options.check_field_validation(options.field_validation, kind)
    return WriteOptions(
        dry_run=options.dry_run,
        field_manager=options.field_manager,
        force=options.force if options.HasField("force") else None,
        field_validation=options.field_validation,
        warn=True,
        user_agent="" if options.field_manager else _user_agent(),
    )


def _user_agent() -> str:
    """The client's user agent, as `machinery.client.api_client` sets it; gRPC adds its own behind a blank."""
    context = _CONTEXT.get()
    for key, value in (context.invocation_metadata() or ()) if context is not None else ():
        if key == "user-agent":
            return str(value).partition(" ")[0]
    return ""
