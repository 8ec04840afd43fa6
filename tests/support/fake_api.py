"""An API server in memory, with the calls of a client that components make: it stores, lists and watches.

Every write is recorded in `requests`, in order. `rejections` and `reject` make calls fail, `hold` makes them
wait. What only one test needs belongs into a subclass of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel
from google.protobuf.message import Message

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, key_of, metadata_of
from nominee.machinery.api.pb import core, events
from nominee.machinery.client.api_client import ListResult, WatchEvent
from nominee.machinery.patch.strategic_merge import strategic_merge_patch
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec
from tests.support.eventually import eventually

M = TypeVar("M", bound=Message)
Json = Any
AnyKind = Kind[Message]


class Request(NamedTuple):
    """A write: `patch/status` of `default/p` with the patch as its body."""

    verb: str
    kind: str
    key: str
    body: Json = None
    options: Mapping[str, object] = {}


@dataclass
class FakeApi:
    """Stands in for `nominee.machinery.client.api_client.Client`."""

    clears_nomination: bool = True
    deletes_gracefully: bool = False  # deletion only sets the deletionTimestamp
    lists_newest_first: bool = False
    lost_answers: int = 0  # bindings that are stored and answered with 503
    requests: list[Request] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)  # reason, name, note
    rejections: dict[str, list[errors.StatusError]] = field(default_factory=dict)  # by verb, once each
    reject: Callable[[Request], Exception | None] = lambda request: None
    hold: dict[str, anyio.Event] = field(default_factory=dict)  # by verb: calls wait for the event

    def __post_init__(self) -> None:
        self.revision = 1
        self.objects: dict[AnyKind, dict[ObjectKey, Message]] = {}
        self.log: list[tuple[int, AnyKind, str, Message]] = []
        self._changed = anyio.Event()

    @classmethod
    def of(cls, *objects: Message) -> FakeApi:
        """Return a server with these objects."""
        api = cls()
        for obj in objects:
            api.put(obj)
        return api

    # For tests

    def put(self, obj: M) -> M:
        """Create or replace an object, as another client would, and return it with its resourceVersion."""
        kind = kinds.of(obj)
        key = key_of(obj)
        stored_objects = self.objects.setdefault(kind, {})
        self.revision += 1
        stored = _copy(obj)
        metadata_of(stored).resourceVersion = str(self.revision)
        self._record(kind, "MODIFIED" if key in stored_objects else "ADDED", stored)
        stored_objects[key] = stored
        return stored

    def remove(self, kind: AnyKind, name: str, namespace: str = "default") -> None:
        """Delete an object, as another client would."""
        self.revision += 1
        gone = self.objects[kind].pop(ObjectKey(namespace if kind.namespaced else "", name))
        self._record(kind, "DELETED", gone)

    def find(self, kind: Kind[M], name: str, namespace: str = "") -> M | None:
        """Return an object, or None."""
        return cast("M | None", self.objects.get(kind, {}).get(ObjectKey(namespace, name)))

    def all_of(self, kind: Kind[M]) -> list[M]:
        """Return the objects of a kind."""
        return cast("list[M]", list(self.objects.get(kind, {}).values()))

    def log_of(self, kind: Kind[M]) -> list[tuple[str, M]]:
        """Return the watch events of a kind: type and object."""
        return [(type_, cast("M", obj)) for _, of, type_, obj in self.log if of is kind]

    def pod(self, name: str) -> core.Pod:
        """Return a pod of `default`."""
        return cast("core.Pod", self.objects[kinds.POD][ObjectKey("default", name)])

    def writes(self, name: str) -> list[tuple[str, Json]]:
        """Return verbs and bodies of the writes to a pod of `default`."""
        return [(request.verb, request.body) for request in self.requests if request.key == f"default/{name}"]

    def listers(self) -> dict[AnyKind, Lister[Message]]:
        """Return listers of all kinds over the stored objects."""
        return {kind: Lister(self, kind) for kind in kinds.KINDS}

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition on what is stored or recorded."""
        await eventually(condition, poll_seconds=0.001)

    # The client's calls

    async def get(self, kind: Kind[M], name: str, namespace: str = "", **_: object) -> M:
        """Return an object, or raise 404."""
        if held := self.hold.get(f"get/{kind.plural}"):
            await held.wait()
        return self._current(kind, name, namespace)

    async def list(self, kind: Kind[M], namespace: str = "", **_: object) -> ListResult[M]:
        """Return the objects of a kind and the revision."""
        return ListResult(self.all_of(kind), str(self.revision))

    async def watch_batches(
        self, kind: Kind[M], namespace: str = "", *, resource_version: str, **_: object
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        """Yield the events of a kind after a resourceVersion, in batches; the first is empty."""
        since = int(resource_version)
        yield []
        while True:
            batch = [
                WatchEvent(type_, cast("M", obj), revision)
                for revision, of, type_, obj in self.log
                if of is kind and revision > since
            ]
            if batch:
                since = batch[-1].revision
                yield batch
            else:
                await self._changed.wait()

    async def create(self, obj: M, **_: object) -> M:
        """Store an object with a name and a uid, or raise 409; Events are recorded in `events` instead."""
        if isinstance(obj, events.Event):
            self.events.append((obj.reason, obj.regarding.name, obj.note))
            return obj
        if isinstance(obj, core.Event):
            self.events.append((obj.reason, obj.involvedObject.name, obj.message))
            return obj
        made = _copy(obj)
        metadata = metadata_of(made)
        metadata.name = metadata.name or f"{metadata.generateName}{self.revision}"
        metadata.uid = metadata.uid or f"uid-{metadata.name}"
        kind = kinds.of(obj)
        await self._call("create", kind, key_of(made), obj)
        if self.find(kind, metadata.name, metadata.namespace) is not None:
            raise errors.already_exists(kind, metadata.name)
        return self.put(made)

    async def update(self, obj: M, *, subresource: str = "", dry_run: bool = False) -> M:
        """Replace an object; 409 where it has another resourceVersion than the stored one."""
        kind, key = kinds.of(obj), key_of(obj)
        await self._call("update", kind, key, obj, subresource=subresource)
        current = self._current(kind, key.name, key.namespace)
        version = metadata_of(obj).resourceVersion
        if version and version != metadata_of(current).resourceVersion:
            raise errors.conflict(kind, key.name, "changed meanwhile")
        return self.put(obj)

    async def patch(
        self, kind: Kind[M], name: str, namespace: str, patch: Json, *, subresource: str = "", **_: object
    ) -> M:
        """Apply a strategic merge patch."""
        await self._call("patch", kind, ObjectKey(namespace, name), patch, subresource=subresource)
        current = self._current(kind, name, namespace)
        full_name = current.DESCRIPTOR.full_name
        return self.put(
            codec.from_json(type(current), strategic_merge_patch(full_name, codec.to_json(current), patch))
        )

    async def delete(self, kind: AnyKind, name: str, namespace: str = "", **options: object) -> bool:
        """Remove an object, or with `deletes_gracefully` mark it; returns whether it is gone."""
        await self._call("delete", kind, ObjectKey(namespace, name), None, options=options)
        current = self._current(kind, name, namespace)
        if self.deletes_gracefully:
            metadata_of(current).deletionTimestamp.CopyFrom(to_time(1.0))
            return False
        self.remove(kind, name, namespace)
        return True

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Set a pod's node name."""
        await self._call("bind", kinds.POD, ObjectKey(namespace, name), node, options={"uid": uid})
        bound = _copy(self._current(kinds.POD, name, namespace))
        if bound.spec.nodeName:
            raise errors.conflict(kinds.POD, name, "already bound")
        bound.spec.nodeName = node
        if self.clears_nomination:
            bound.status.ClearField("nominatedNodeName")
        self.put(bound)
        if self.lost_answers:
            self.lost_answers -= 1
            raise errors.service_unavailable("the connection broke")

    async def _call(
        self,
        verb: str,
        kind: AnyKind,
        key: ObjectKey,
        body: Json,
        *,
        subresource: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        await anyio.lowlevel.checkpoint()
        verb = f"{verb}/{subresource}" if subresource else verb
        if verb in self.hold:
            await self.hold[verb].wait()
        request = Request(verb, kind.kind, str(key), body, options or {})
        self.requests.append(request)
        if self.rejections.get(verb):
            raise self.rejections[verb].pop(0)
        if (rejection := self.reject(request)) is not None:
            raise rejection

    def _current(self, kind: Kind[M], name: str, namespace: str) -> M:
        found = self.find(kind, name, namespace)
        if found is None:
            raise errors.not_found(kind, name)
        return found

    def _record(self, kind: AnyKind, type_: str, obj: Message) -> None:
        self.log.append((self.revision, kind, type_, obj))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@dataclass(frozen=True, slots=True)
class Lister(Generic[M]):
    """The objects of one kind, as an informer's cache would list them."""

    api: FakeApi
    kind: Kind[M]

    def get(self, name: str, namespace: str = "") -> M | None:
        """Return an object, or None."""
        return self.api.find(self.kind, name, namespace)

    def list(self, namespace: str = "") -> list[M]:
        """Return the objects of a namespace, or all."""
        return [obj for obj in self.api.all_of(self.kind) if namespace in ("", metadata_of(obj).namespace)]


def _copy(obj: M) -> M:
    copy = type(obj)()
    copy.CopyFrom(obj)
    return copy
