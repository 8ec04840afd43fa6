"""An API server in memory with what the scheduler's shell uses: it lists, watches, patches and binds.

Every write is noted in `requests`, in order. `reject` makes the next calls of a kind fail.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from google.protobuf.message import Message

from machinery.api import errors, kinds
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, key_of
from machinery.api.pb import core, events
from machinery.client.api_client import ListResult, WatchEvent
from machinery.patch.strategic_merge import strategic_merge_patch
from machinery.wire import codec
from tests.support.eventually import eventually


@dataclass
class FakeApi:
    """Stands in for `machinery.client.api_client.Client`."""

    clears_nomination: bool = True
    lost_answers: int = 0  # bindings that are done and answered with 503
    requests: list[tuple[str, str, Any]] = field(default_factory=list)  # verb, ns/name, body
    events: list[tuple[str, str, str]] = field(default_factory=list)  # reason, name, note
    rejections: dict[str, list[errors.StatusError]] = field(default_factory=dict)  # by verb

    def __post_init__(self) -> None:
        self.revision = 1
        self.objects: dict[Kind[Any], dict[ObjectKey, Any]] = {}
        self.log: list[tuple[int, Kind[Any], str, Any]] = []
        self._changed = anyio.Event()
        self.hold: dict[str, anyio.Event] = {}  # verb -> calls wait for it

    # What a test does

    def put(self, obj: Any) -> Any:
        """Create or replace, as another client would."""
        kind = kinds.of(obj)
        key = key_of(obj)
        known = self.objects.setdefault(kind, {})
        self.revision += 1
        stored = type(obj)()
        stored.CopyFrom(obj)
        stored.metadata.resourceVersion = str(self.revision)
        self._note(kind, "MODIFIED" if key in known else "ADDED", stored)
        known[key] = stored
        return stored

    def remove(self, kind: Kind[Any], name: str, namespace: str = "default") -> None:
        self.revision += 1
        gone = self.objects[kind].pop(ObjectKey(namespace, name))
        self._note(kind, "DELETED", gone)

    def pod(self, name: str) -> core.Pod:
        found: core.Pod = self.objects[kinds.POD][ObjectKey("default", name)]
        return found

    def writes(self, name: str) -> list[tuple[str, Any]]:
        """Verbs and bodies of what was written to a pod of `default`."""
        return [(verb, body) for verb, key, body in self.requests if key == f"default/{name}"]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition on what is stored or noted."""
        await eventually(condition, poll_seconds=0.001)

    # What the scheduler does

    async def list(self, kind: Kind[Any], namespace: str = "", **_: Any) -> ListResult[Any]:
        return ListResult(list(self.objects.get(kind, {}).values()), str(self.revision))

    async def watch_batches(
        self, kind: Kind[Any], namespace: str = "", *, resource_version: str, **_: Any
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        since = int(resource_version)
        yield []
        while True:
            batch = [
                WatchEvent(type_, obj, revision)
                for revision, of, type_, obj in self.log
                if of is kind and revision > since
            ]
            if batch:
                since = batch[-1].revision
                yield batch
            else:
                await self._changed.wait()

    async def patch(
        self, kind: Kind[Any], name: str, namespace: str, patch: Any, *, subresource: str = "", **_: Any
    ) -> Any:
        await self._call(f"patch/{subresource}", f"{namespace}/{name}", patch)
        current = self._current(kind, name, namespace)
        full_name = current.DESCRIPTOR.full_name
        return self.put(
            codec.from_json(type(current), strategic_merge_patch(full_name, codec.to_json(current), patch))
        )

    async def update(self, obj: Any, *, subresource: str = "", **_: Any) -> Any:
        kind, key = kinds.of(obj), key_of(obj)
        await self._call(f"update/{subresource}", f"{key.namespace}/{key.name}", obj)
        current = self._current(kind, key.name, key.namespace)
        if current.metadata.resourceVersion != obj.metadata.resourceVersion:
            raise errors.conflict(kind, key.name, "changed meanwhile")
        return self.put(obj)

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        await self._call("bind", f"{namespace}/{name}", node)
        bound = core.Pod()
        bound.CopyFrom(self._current(kinds.POD, name, namespace))
        if bound.spec.nodeName:
            raise errors.conflict(kinds.POD, name, "already bound")
        bound.spec.nodeName = node
        if self.clears_nomination:
            bound.status.ClearField("nominatedNodeName")
        self.put(bound)
        if self.lost_answers:
            self.lost_answers -= 1
            raise errors.service_unavailable("the connection broke")

    async def get(self, kind: Kind[Any], name: str, namespace: str = "", **_: Any) -> Any:
        if held := self.hold.get(f"get/{kind.plural}"):
            await held.wait()
        return self._current(kind, name, namespace)

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **_: Any) -> bool:
        await self._call("delete", f"{namespace}/{name}", None)
        self._current(kind, name, namespace)
        self.remove(kind, name, namespace)
        return True

    async def create(self, obj: Message) -> Message:
        if isinstance(obj, events.Event):
            self.events.append((obj.reason, obj.regarding.name, obj.note))
        elif isinstance(obj, core.Event):
            self.events.append((obj.reason, obj.involvedObject.name, obj.message))
        return obj

    async def _call(self, verb: str, key: str, body: Any) -> None:
        await anyio.lowlevel.checkpoint()
        if verb in self.hold:
            await self.hold[verb].wait()
        self.requests.append((verb, key, body))
        if self.rejections.get(verb):
            raise self.rejections[verb].pop(0)

    def _current(self, kind: Kind[Any], name: str, namespace: str) -> Any:
        found = self.objects.get(kind, {}).get(ObjectKey(namespace, name))
        if found is None:
            raise errors.not_found(kind, name)
        return found

    def _note(self, kind: Kind[Any], type_: str, obj: Any) -> None:
        self.log.append((self.revision, kind, type_, obj))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
