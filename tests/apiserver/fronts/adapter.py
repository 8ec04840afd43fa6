"""Both fronts in the same words: JSON documents in, `Outcome`s out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import grpc
import grpc.aio
from nominee_api.v1 import api_pb2 as api
from nominee_api.v1 import api_pb2_grpc as api_grpc

from apiserver.registry.scale import KIND as SCALE
from apiserver.watch_cache import WatchCache
from machinery import errors
from machinery.kinds import Kind
from machinery.pb import core, meta, policy
from machinery.wire import codec, envelope, presence
from tests.apiserver.rest.asgi import Rest
from tests.support.patience import PATIENCE_SECONDS

Document = dict[str, Any]
PATCHES = {
    "json": (api.PatchRequest.JSON, "application/json-patch+json"),
    "merge": (api.PatchRequest.MERGE, "application/merge-patch+json"),
    "strategic": (api.PatchRequest.STRATEGIC, "application/strategic-merge-patch+json"),
    "apply": (api.PatchRequest.APPLY, "application/apply-patch+yaml"),
}
BINDING = Kind("", "v1", "Binding", "bindings", core.Binding, core.Binding)
EVICTION = Kind("policy", "v1", "Eviction", "evictions", policy.Eviction, policy.Eviction)
_BODIES = {"binding": BINDING, "eviction": EVICTION, "scale": SCALE}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code` as HTTP has it (any success is 200); `document` is the object, the list, or the Status."""

    code: int
    document: Document = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return self.document[name]

    @property
    def metadata(self) -> Document:
        return dict(self.document["metadata"])

    @property
    def names(self) -> list[str]:
        """Of a list's items."""
        return [item["metadata"]["name"] for item in self.document["items"]]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """(reason, field) of a Status."""
        listed = self.document.get("details", {}).get("causes", [])
        return [(cause["reason"], cause.get("field", "")) for cause in listed]


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    document: Document


class Stream(Protocol):
    """An open watch."""

    def next(self) -> Event | None:
        """The next event, None at the end."""


class Api(Protocol):
    """A front. Options are named as in REST's query: dryRun, fieldValidation, fieldManager, force, limit,
    labelSelector, resourceVersion, ..."""

    def create(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        **options: Any,
    ) -> Outcome: ...

    def get(
        self, kind: Kind[Any], name: str, namespace: str = "", *, subresource: str = "", **options: Any
    ) -> Outcome: ...

    def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome: ...

    def update(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        subresource: str = "",
        **options: Any,
    ) -> Outcome: ...

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        form: str = "merge",
        subresource: str = "",
        **options: Any,
    ) -> Outcome: ...

    def delete(
        self, kind: Kind[Any], name: str, namespace: str = "", *, body: Document | None = None
    ) -> Outcome: ...

    def delete_collection(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome: ...

    def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Any:
        """A context manager of a `Stream`."""


class RestApi:
    """The REST front as an ASGI application."""

    name = "rest"

    def __init__(self, portal: anyio.from_thread.BlockingPortal, rest: Rest) -> None:
        self._portal = portal
        self._rest = rest

    def _ask(
        self,
        method: str,
        path: str,
        document: Any,
        options: Mapping[str, Any],
        content: str = "application/json",
    ) -> Outcome:
        headers = {"accept": "application/json", "content-type": content, "user-agent": "suite"}
        data = (
            b""
            if document is None
            else document
            if isinstance(document, bytes)
            else json.dumps(document).encode()
        )
        query = {key: _text(value) for key, value in options.items()}
        reply = self._portal.call(self._rest.request, method, path, query, data, headers)
        return Outcome(200 if reply.code < 300 else reply.code, reply.document, tuple(reply.warnings))

    def create(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        if subresource:
            return self._ask("POST", _path(kind, namespace, name, subresource), document, options)
        return self._ask("POST", _path(kind, namespace), document, options)

    def get(
        self, kind: Kind[Any], name: str, namespace: str = "", *, subresource: str = "", **options: Any
    ) -> Outcome:
        return self._ask("GET", _path(kind, namespace, name, subresource), None, options)

    def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        return self._ask("GET", _path(kind, namespace), None, options)

    def update(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        name = document["metadata"]["name"]
        return self._ask("PUT", _path(kind, namespace, name, subresource), document, options)

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        form: str = "merge",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        return self._ask("PATCH", _path(kind, namespace, name, subresource), patch, options, PATCHES[form][1])

    def delete(
        self, kind: Kind[Any], name: str, namespace: str = "", *, body: Document | None = None
    ) -> Outcome:
        return self._ask("DELETE", _path(kind, namespace, name), body, {})

    def delete_collection(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        return self._ask("DELETE", _path(kind, namespace), None, options)

    @contextmanager
    def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Iterator[Stream]:
        query = {key: _text(value) for key, value in {"watch": "1", **options}.items()}
        stream = RestStream(self._portal)
        with self._portal.wrap_async_context_manager(
            _streaming(self._rest, _path(kind, namespace), query, stream)
        ):
            yield stream
        self._portal.call(stream.close)


class RestStream:
    """Lines of JSON as they are sent."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal) -> None:
        self._portal = portal
        self._send, self._receive = anyio.create_memory_object_stream[Event](10_000)
        self._rest = b""

    async def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            found = json.loads(line)
            if "type" not in found:
                found = {"type": "REFUSED", "object": found}
            await self._send.send(Event(found["type"], found["object"]))

    async def done(self) -> None:
        await self._send.aclose()

    async def close(self) -> None:
        await self._send.aclose()
        await self._receive.aclose()

    def next(self) -> Event | None:
        return self._portal.call(_next, self._receive.receive, (anyio.EndOfStream,))


@asynccontextmanager
async def _streaming(rest: Rest, path: str, query: dict[str, str], stream: RestStream) -> AsyncIterator[None]:
    """A request whose answer is taken as it comes; left when the block ends."""
    left = anyio.Event()
    begun = anyio.Event()
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await left.wait()
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            begun.set()
            return
        await stream.take(message.get("body", b""))
        if not message.get("more_body", False):
            await stream.done()

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": urlencode(query).encode(),
        "headers": [],
    }
    async with anyio.create_task_group() as group:
        group.start_soon(rest.front, scope, receive, send)
        with anyio.fail_after(PATIENCE_SECONDS):
            await begun.wait()
        yield
        left.set()


class GrpcApi:
    """The gRPC front, by its stub."""

    name = "grpc"

    def __init__(self, portal: anyio.from_thread.BlockingPortal, address: str) -> None:
        self._portal = portal
        self._channel = portal.call(_open, address)
        self._stub = api_grpc.APIStub(self._channel)

    def close(self) -> None:
        self._portal.call(self._channel.close)

    def _ask(self, method: Any, request: Any) -> Any:
        """The answer, or an Outcome of a failure."""

        async def call() -> Any:
            try:
                return await method(request, timeout=PATIENCE_SECONDS)
            except grpc.aio.AioRpcError as error:
                if not errors.from_server(error):
                    raise
                return _failure(errors.from_rpc_error(error))

        return self._portal.call(call)

    def _object(self, kind: Kind[Any], subresource: str, answer: Any) -> Outcome:
        if isinstance(answer, Outcome):
            return answer
        shown = SCALE if subresource == "scale" else kind
        document = _typed(codec.to_json(envelope.decode(shown, answer.body)), shown.api_version, shown.kind)
        return Outcome(200, document, tuple(answer.warnings))

    def create(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        own = document.get("metadata", {}).get("name", "")
        request = api.CreateRequest(
            target=_target(kind, namespace, name or own, subresource),
            body=_encode(_BODIES.get(subresource, kind), document),
            options=_write_options(options),
        )
        return self._object(
            kind, "" if subresource != "scale" else subresource, self._ask(self._stub.Create, request)
        )

    def get(
        self, kind: Kind[Any], name: str, namespace: str = "", *, subresource: str = "", **options: Any
    ) -> Outcome:
        request = api.GetRequest(
            target=_target(kind, namespace, name, subresource),
            resource_version=options.get("resourceVersion", ""),
        )
        return self._object(kind, subresource, self._ask(self._stub.Get, request))

    def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        return self._list(kind, self._ask(self._stub.List, _list_request(kind, namespace, options)))

    def _list(self, kind: Kind[Any], answer: Any) -> Outcome:
        if isinstance(answer, Outcome):
            return answer
        metadata = {"resourceVersion": answer.resource_version}
        if getattr(answer, "continue"):
            metadata["continue"] = getattr(answer, "continue")
        if answer.HasField("remaining_item_count"):
            metadata["remainingItemCount"] = answer.remaining_item_count
        items = [codec.to_json(envelope.decode(kind, body)) for body in answer.items]
        for item in items:
            del item["kind"], item["apiVersion"]
        return Outcome(200, {"metadata": metadata, "items": items})

    def update(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        request = api.UpdateRequest(
            target=_target(kind, namespace, document["metadata"]["name"], subresource),
            body=_encode(_BODIES.get(subresource, kind), document),
            options=_write_options(options),
        )
        return self._object(kind, subresource, self._ask(self._stub.Update, request))

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        form: str = "merge",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        request = api.PatchRequest(
            target=_target(kind, namespace, name, subresource),
            type=PATCHES[form][0],
            patch=patch if isinstance(patch, bytes) else json.dumps(patch).encode(),
            options=_write_options(options),
        )
        return self._object(kind, subresource, self._ask(self._stub.Patch, request))

    def delete(
        self, kind: Kind[Any], name: str, namespace: str = "", *, body: Document | None = None
    ) -> Outcome:
        request = api.DeleteRequest(target=_target(kind, namespace, name), options=_delete_options(body))
        answer = self._ask(self._stub.Delete, request)
        if isinstance(answer, Outcome):
            return answer
        return Outcome(200, codec.to_json(envelope.decode(kind, answer.body)))

    def delete_collection(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        request = api.DeleteCollectionRequest(
            target=_target(kind, namespace), list=_list_request(kind, namespace, options)
        )
        return self._list(kind, self._ask(self._stub.DeleteCollection, request))

    @contextmanager
    def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Iterator[Stream]:
        request = api.WatchRequest(
            target=_target(kind, namespace),
            label_selector=options.get("labelSelector", ""),
            field_selector=options.get("fieldSelector", ""),
            resource_version=options.get("resourceVersion", ""),
            resource_version_match=options.get("resourceVersionMatch", ""),
            allow_bookmarks=bool(options.get("allowWatchBookmarks", False)),
            timeout_seconds=options.get("timeoutSeconds", 0),
        )
        if "sendInitialEvents" in options:
            request.send_initial_events = options["sendInitialEvents"]
        stream = GrpcStream(self._portal, kind, self._portal.call(_called, self._stub.Watch, request))
        try:
            yield stream
        finally:
            self._portal.call(stream.call.cancel)


class GrpcStream:
    """Events one by one."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, kind: Kind[Any], call: Any) -> None:
        self._portal = portal
        self._kind = kind
        self.call = call
        self._events: list[Event] = []

    def next(self) -> Event | None:
        while not self._events:
            try:
                response = self._portal.call(_next, self.call.read, ())
            except grpc.aio.AioRpcError as error:
                return Event("REFUSED", codec.to_json(errors.from_rpc_error(error).to_message()))
            if response is grpc.aio.EOF:
                return None
            for event in response.events:
                if event.type == api.WatchEvent.ERROR:
                    shown = codec.to_json(meta.Status.FromString(event.error))
                else:
                    shown = codec.to_json(envelope.decode(self._kind, event.body))
                self._events.append(Event(api.WatchEvent.Type.Name(event.type), shown))
        return self._events.pop(0)


@dataclass
class Both:
    """Both fronts of one server, its cache, and how many namespaces were used."""

    rest: RestApi
    grpc: GrpcApi
    cache: WatchCache
    count: int = 0

    def of(self, name: str) -> Api:
        return self.rest if name == "rest" else self.grpc


async def _open(address: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


async def _called(method: Any, request: Any) -> Any:
    return method(request)


async def _next(receive: Any, ends: tuple[type[BaseException], ...]) -> Any:
    with anyio.fail_after(PATIENCE_SECONDS):
        try:
            return await receive()
        except ends:
            return None


def _failure(error: errors.StatusError) -> Outcome:
    return Outcome(error.code, _typed(codec.to_json(error.to_message()), "v1", "Status"))


def _typed(document: Document, api_version: str, kind: str) -> Document:
    """As JSON says it; protobuf leaves it to the envelope."""
    return {"kind": kind, "apiVersion": api_version, **document}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _path(kind: Kind[Any], namespace: str, name: str = "", subresource: str = "") -> str:
    parts = ["apis", kind.group] if kind.group else ["api"]
    parts.append(kind.version)
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (kind.plural, name, subresource) if part]
    return "/" + "/".join(parts)


def _target(kind: Kind[Any], namespace: str, name: str = "", subresource: str = "") -> api.Target:
    return api.Target(
        group=kind.group,
        version=kind.version,
        resource=kind.plural,
        namespace=namespace if kind.namespaced else "",
        name=name,
        subresource=subresource,
    )


def _encode(kind: Kind[Any], document: Document) -> bytes:
    message = codec.from_json(kind.message, document)
    presence.fill(message)
    return envelope.wrap(kind, message.SerializeToString(deterministic=True))


def _write_options(options: Mapping[str, Any]) -> api.WriteOptions:
    return api.WriteOptions(
        dry_run=options.get("dryRun") == "All",
        field_manager=options.get("fieldManager", ""),
        force=bool(options.get("force", False)),
        field_validation=options.get("fieldValidation", ""),
    )


def _list_request(kind: Kind[Any], namespace: str, options: Mapping[str, Any]) -> api.ListRequest:
    return api.ListRequest(
        target=_target(kind, namespace),
        label_selector=options.get("labelSelector", ""),
        field_selector=options.get("fieldSelector", ""),
        resource_version=options.get("resourceVersion", ""),
        resource_version_match=options.get("resourceVersionMatch", ""),
        limit=int(options.get("limit", 0)),
        **{"continue": options.get("continue", "")},
    )


def _delete_options(body: Document | None) -> bytes:
    return b"" if body is None else codec.from_json(meta.DeleteOptions, body).SerializeToString()
