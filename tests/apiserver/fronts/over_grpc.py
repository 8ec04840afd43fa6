"""What a test says, said to the gRPC front by its stub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio.from_thread
import grpc
import grpc.aio

from nominee.apiserver.kinds.autoscaling.scales import SCALE
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.wire import codec, envelope, presence
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc
from tests.apiserver.fronts.adapter import END, Api, Call, Document, Event, Outcome, Stream, patiently
from tests.support.patience import PATIENCE_SECONDS

_PATCHES = {
    "json": api.PatchRequest.JSON,
    "merge": api.PatchRequest.MERGE,
    "strategic": api.PatchRequest.STRATEGIC,
    "apply": api.PatchRequest.APPLY,
}
_BODIES: dict[str, Kind[Any]] = {
    "binding": Kind("", "v1", "Binding", "bindings", core.Binding, core.Binding),
    "eviction": Kind("policy", "v1", "Eviction", "evictions", policy.Eviction, policy.Eviction),
    "scale": SCALE,
}


class GrpcApi(Api):
    name = "grpc"

    def __init__(self, portal: anyio.from_thread.BlockingPortal, address: str) -> None:
        super().__init__(portal)
        self._channel = portal.call(_open, address)
        self._stub = api_grpc.APIStub(self._channel)

    def close(self) -> None:
        self._portal.call(self._channel.close)

    def ask(self, call: Call) -> Outcome:
        method, request = self._request(call)
        try:
            answer = self._portal.call(_answer, method, request)
        except grpc.aio.AioRpcError as error:
            if not errors.from_server(error):
                raise
            failure = errors.from_rpc_error(error)
            return Outcome(failure.code, _typed(codec.to_json(failure.to_message()), "v1", "Status"))
        if call.verb in ("list", "delete_collection"):
            return _list(call.kind, answer)
        if call.verb == "delete":
            deleted = codec.to_json(envelope.decode(call.kind, answer.body))
            return Outcome(200, deleted, tuple(answer.warnings))
        shown = SCALE if call.subresource == "scale" else call.kind
        document = _typed(codec.to_json(envelope.decode(shown, answer.body)), shown.api_version, shown.kind)
        return Outcome(200, document, tuple(answer.warnings))

    def _request(self, call: Call) -> tuple[Any, Any]:
        """The method and what it takes."""
        target = _target(call)
        match call.verb:
            case "create":
                target.name = call.name or call.body.get("metadata", {}).get("name", "")
                return self._stub.Create, api.CreateRequest(
                    target=target, body=_body(call), options=_write_options(call.options)
                )
            case "get":
                version = call.options.get("resourceVersion", "")
                return self._stub.Get, api.GetRequest(target=target, resource_version=version)
            case "list":
                return self._stub.List, _list_request(call)
            case "update":
                return self._stub.Update, api.UpdateRequest(
                    target=target, body=_body(call), options=_write_options(call.options)
                )
            case "patch":
                return self._stub.Patch, api.PatchRequest(
                    target=target,
                    type=_PATCHES[call.form],
                    patch=call.body if isinstance(call.body, bytes) else json.dumps(call.body).encode(),
                    options=_write_options(call.options),
                )
            case "delete":
                options = codec.from_json(meta.DeleteOptions, call.body or {}).SerializeToString()
                return self._stub.Delete, api.DeleteRequest(target=target, options=options)
            case "delete_collection":
                return self._stub.DeleteCollection, api.DeleteCollectionRequest(
                    target=target, list=_list_request(call)
                )
            case "watch":
                return self._stub.Watch, _watch_request(call)

    @contextmanager
    def _watch(self, call: Call) -> Iterator[Stream]:
        stream = GrpcStream(self._portal, call.kind, self._portal.call(_called, *self._request(call)))
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

    def next(self) -> Event:
        while not self._events:
            try:
                response = self._portal.call(patiently, self.call.read)
            except grpc.aio.AioRpcError as error:
                return Event("REFUSED", codec.to_json(errors.from_rpc_error(error).to_message()))
            if response is grpc.aio.EOF:
                return END
            for event in response.events:
                if event.type == api.WatchEvent.ERROR:
                    shown = codec.to_json(meta.Status.FromString(event.error))
                else:
                    shown = codec.to_json(envelope.decode(self._kind, event.body))
                self._events.append(Event(api.WatchEvent.Type.Name(event.type), shown))
        return self._events.pop(0)


async def _open(address: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


async def _answer(method: Any, request: Any) -> Any:
    return await method(request, timeout=PATIENCE_SECONDS)


async def _called(method: Any, request: Any) -> Any:
    return method(request)


def _list(kind: Kind[Any], answer: Any) -> Outcome:
    metadata = {"resourceVersion": answer.resource_version}
    if getattr(answer, "continue"):
        metadata["continue"] = getattr(answer, "continue")
    if answer.HasField("remaining_item_count"):
        metadata["remainingItemCount"] = answer.remaining_item_count
    items = [codec.to_json(envelope.decode(kind, body)) for body in answer.items]
    for item in items:
        del item["kind"], item["apiVersion"]
    return Outcome(200, {"metadata": metadata, "items": items}, tuple(answer.warnings))


def _typed(document: Document, api_version: str, kind: str) -> Document:
    """As JSON says it; protobuf leaves it to the envelope."""
    return {"kind": kind, "apiVersion": api_version, **document}


def _target(call: Call) -> api.Target:
    kind = call.kind
    return api.Target(
        group=kind.group,
        version=kind.version,
        resource=kind.plural,
        namespace=call.namespace if kind.namespaced else "",
        name=call.name,
        subresource=call.subresource,
    )


def _body(call: Call) -> bytes:
    kind = _BODIES.get(call.subresource, call.kind)
    message = codec.from_json(kind.message, call.body)
    presence.fill(message)
    return envelope.wrap(kind, message.SerializeToString(deterministic=True))


def _write_options(options: Mapping[str, Any]) -> api.WriteOptions:
    return api.WriteOptions(
        dry_run=options.get("dryRun") == "All",
        field_manager=options.get("fieldManager", ""),
        force=options.get("force"),
        field_validation=options.get("fieldValidation", ""),
    )


def _selection(options: Mapping[str, Any]) -> dict[str, Any]:
    """What lists and watches are both asked for."""
    return {
        "label_selector": options.get("labelSelector", ""),
        "field_selector": options.get("fieldSelector", ""),
        "resource_version": options.get("resourceVersion", ""),
        "resource_version_match": options.get("resourceVersionMatch", ""),
    }


def _list_request(call: Call) -> api.ListRequest:
    return api.ListRequest(
        target=_target(call),
        limit=int(call.options.get("limit", 0)),
        **{"continue": call.options.get("continue", "")},
        **_selection(call.options),
    )


def _watch_request(call: Call) -> api.WatchRequest:
    request = api.WatchRequest(
        target=_target(call),
        allow_bookmarks=bool(call.options.get("allowWatchBookmarks", False)),
        timeout_seconds=call.options.get("timeoutSeconds", 0),
        **_selection(call.options),
    )
    if "sendInitialEvents" in call.options:
        request.send_initial_events = call.options["sendInitialEvents"]
    return request
