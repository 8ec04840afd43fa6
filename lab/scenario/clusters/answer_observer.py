"""Observe the answers of a simulation's API servers, with etcd's revisions between which they were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict

import grpc
import grpc.aio

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.scenario.clusters.cloud_observer import CloudObserver
from nominee.lab.scenario.clusters.read_observer import ReadObserver
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import STORED_AS, AnyKind, by_resource
from nominee.machinery.api.objects import metadata_of, resource_version_of
from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.simulation.etcd.store import Store
from nominee.simulation.event_loop.clock import EPOCH_SECONDS
from nominee.simulation.network.call import Call, Status

Request: TypeAlias = (
    api.GetRequest
    | api.ListRequest
    | api.CreateRequest
    | api.UpdateRequest
    | api.PatchRequest
    | api.DeleteRequest
)
_REQUESTS: Final[Mapping[str, tuple[Method, type[Request]]]] = {
    "Get": (Method.GET, api.GetRequest),
    "List": (Method.LIST, api.ListRequest),
    "Create": (Method.CREATE, api.CreateRequest),
    "Update": (Method.UPDATE, api.UpdateRequest),
    "Patch": (Method.PATCH, api.PatchRequest),
    "Delete": (Method.DELETE, api.DeleteRequest),
}
_BATCHED: Final = {
    getattr(api.BatchedCall, name.upper()): _REQUESTS[name]
    for name in ("Get", "Create", "Update", "Patch", "Delete")
}
_SERVICE: Final = f"/{api.DESCRIPTOR.services_by_name['API'].full_name}/"
_OF_OBJECT: Final = frozenset({"", "status", "resize", "ephemeralcontainers"})
"""The subresources whose answer is the object."""
_RESUMED_SECONDS: Final = 0.5
"""So long after it was frozen a process may act on what was true before."""
_OPEN_MAX: Final = 10_000
"""Requests without an answer that are kept; a process that dies never gets some."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that has no answer yet, and etcd's revision when it was sent."""

    method: Method
    kind: AnyKind
    """As asked for: the answer has an object of this kind."""
    request: Request
    begin: int
    time: float
    was_frozen: bool


class AnswerObserver:
    """The `tap` of a simulation's network: reports each answer about the newest state to `observe`.

    Lists and watches go to `reads`, those from a cache, too; all other calls to `cloud`.
    """

    def __init__(
        self, store: Store, observe: Callable[[Answer], None], reads: ReadObserver, cloud: CloudObserver
    ) -> None:
        self._store, self._observe, self._reads, self._cloud = store, observe, reads, cloud
        self._open: dict[tuple[Call, int], _Sent] = {}

    def on_request(self, call: Call, data: bytes) -> None:
        """Keep a request, or those of a batch."""
        name = call.path.removeprefix(_SERVICE)
        if name == "Calls":
            for each in api.CallBatch.FromString(data).calls:
                if each.method in _BATCHED:
                    method, message = _BATCHED[each.method]
                    self._keep(call, each.id, method, message.FromString(each.request))
        elif name in _REQUESTS:
            method, message = _REQUESTS[name]
            self._keep(call, 0, method, message.FromString(data))
        elif name == "Watch":
            self._reads.on_watch(call, data)
        elif name == call.path:
            self._cloud.on_request(call, data)

    def _keep(self, call: Call, number: int, method: Method, request: Request) -> None:
        target = request.target
        kind = by_resource(target.group, target.version, target.resource)
        if kind is None or not (isinstance(request, api.ListRequest) or _is_about_newest(request)):
            return
        if len(self._open) >= _OPEN_MAX:
            del self._open[next(iter(self._open))]
        time = call.network.loop.time()
        was_frozen = call.client is not None and time - call.client.resumed_at < _RESUMED_SECONDS
        revision = self._store.revision
        self._open[call, number] = _Sent(method, kind, request, revision, EPOCH_SECONDS + time, was_frozen)

    def on_response(self, call: Call, data: bytes, status: Status | None) -> None:
        """Report the answer of a request, or those of a batch."""
        if status is not None:
            sent = self._open.pop((call, 0), None)
            if sent is not None:
                self._report(call, sent, data, _error(status))
            elif not call.path.startswith(_SERVICE):
                self._cloud.on_response(call, data, status)
            return
        name = call.path.removeprefix(_SERVICE)
        if name == "Watch":
            self._reads.on_events(call, data)
        elif name == "Calls":
            for each in api.AnswerBatch.FromString(data).answers:
                sent = self._open.pop((call, each.id), None)
                if sent is not None:
                    error = errors.from_rich_status(each.status) if each.HasField("status") else None
                    self._report(call, sent, each.response, error)

    def _report(self, call: Call, sent: _Sent, data: bytes, error: grpc.aio.AioRpcError | None) -> None:
        if error is None and isinstance(sent.request, api.ListRequest):
            self._reads.on_list(call, sent.request, data)
            if not _is_about_newest(sent.request):
                return
        found = _done(sent, data) if error is None else _refused(sent, error)
        if found is None:
            return
        method, outcome, namespace, name, version = found
        self._observe(
            Answer(
                client=call.client.name if call.client is not None else "",
                method=method,
                outcome=outcome,
                kind=STORED_AS.get(sent.kind, sent.kind),
                namespace=namespace,
                name=name,
                begin=sent.begin,
                end=self._store.revision,
                resource_version=version,
                client_pid=call.client.pid if call.client is not None else 0,
                begin_time=sent.time,
                was_frozen=sent.was_frozen,
                **_named(sent),
            )
        )


class _Named(TypedDict, total=False):
    """The object that a request names beside its name, and its version."""

    uid: str
    is_forced: bool
    node: str
    generate_name: str
    expected_version: int


def _named(sent: _Sent) -> _Named:
    """Return the uid and the version in a request, the node of a binding, and a generateName."""
    request = sent.request
    if isinstance(request, api.DeleteRequest) and request.options:
        options = meta.DeleteOptions.FromString(request.options)
        is_forced = options.HasField("gracePeriodSeconds") and options.gracePeriodSeconds == 0
        return {"uid": options.preconditions.uid, "is_forced": is_forced}
    if isinstance(request, api.CreateRequest) and request.target.subresource == "binding":
        binding = core.Binding.FromString(envelope.unwrap(request.body)[2])
        return {"uid": binding.metadata.uid, "node": binding.target.name}
    if isinstance(request, api.CreateRequest) and not request.target.subresource:
        metadata = metadata_of(envelope.decode(sent.kind, request.body))
        return {} if metadata.name else {"generate_name": metadata.generateName}
    if isinstance(request, api.UpdateRequest) and request.target.subresource in _OF_OBJECT:
        obj = envelope.decode(sent.kind, request.body)
        return {"uid": metadata_of(obj).uid, "expected_version": resource_version_of(obj)}
    return {}


_Found: TypeAlias = tuple[Method, Outcome, str, str, int]
"""Method, outcome, namespace and name of the object, and its resourceVersion."""


def _is_about_newest(request: Request) -> bool:
    """Return whether an answer is about the state at a moment after the request."""
    if isinstance(request, api.GetRequest):
        return not request.resource_version and request.target.subresource in _OF_OBJECT
    if isinstance(request, api.ListRequest):
        return not (request.resource_version or getattr(request, "continue"))
    if isinstance(request, api.DeleteRequest):
        return b"All" not in request.options  # dryRun
    return not request.options.dry_run


def _error(status: Status) -> grpc.aio.AioRpcError | None:
    return None if status.code is grpc.StatusCode.OK else status.error()


def _done(sent: _Sent, data: bytes) -> _Found | None:
    """Return the finding of a successful answer; None for one that does not show the object."""
    target = sent.request.target
    if sent.method is Method.LIST:
        version = api.ListResponse.FromString(data).resource_version
        return Method.LIST, Outcome.DONE, target.namespace, "", int(version or 0)
    if sent.method is Method.DELETE or target.subresource == "eviction":
        return Method.DELETE, Outcome.DONE, target.namespace, target.name, 0
    if target.subresource == "binding":
        return Method.UPDATE, Outcome.DONE, target.namespace, target.name, 0
    if target.subresource not in _OF_OBJECT:
        return None
    obj = envelope.decode(sent.kind, api.Object.FromString(data).body)
    metadata = metadata_of(obj)
    return sent.method, Outcome.DONE, metadata.namespace, metadata.name, resource_version_of(obj)


def _refused(sent: _Sent, error: grpc.aio.AioRpcError) -> _Found | None:
    """Return the finding of an error; None for one that is not the server's."""
    if not errors.from_server(error):
        return None
    status, target = errors.from_rpc_error(error), sent.request.target
    other = sent.method, Outcome.REFUSED, target.namespace, target.name, 0
    if status.details is None or status.details.kind != sent.kind.plural:
        return other
    name = status.details.name
    if status.reason == "NotFound" and name == target.name:
        return sent.method, Outcome.NOT_FOUND, target.namespace, name, 0
    if status.reason == "AlreadyExists" and sent.method is Method.CREATE and not target.subresource:
        return sent.method, Outcome.ALREADY_EXISTS, target.namespace, name, 0
    if status.reason == "Conflict" and errors.OPTIMISTIC_LOCK in status.message:
        return _changed(sent) or other
    return other


def _changed(sent: _Sent) -> _Found | None:
    request = sent.request
    if not isinstance(request, api.UpdateRequest) or request.target.subresource not in _OF_OBJECT:
        return None
    version = resource_version_of(envelope.decode(sent.kind, request.body))
    if not version:
        return None
    return sent.method, Outcome.CHANGED, request.target.namespace, request.target.name, version
