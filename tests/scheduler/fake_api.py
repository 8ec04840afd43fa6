"""An API server for tests of plugins that do I/O: keeps objects, notes requests, can reject them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machinery.api import errors, kinds
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, key_of
from machinery.runtime.clock import to_time


class FakeApi:
    """What plugins use of a client, and listers over the same objects."""

    def __init__(self, *objects: Any) -> None:
        self._objects: dict[tuple[Kind[Any], ObjectKey], Any] = {}
        self._revision = 100
        self.requests: list[tuple[Any, ...]] = []
        self.reject: Callable[[tuple[Any, ...]], Exception | None] = lambda request: None
        for obj in objects:
            self.put(obj)

    def put(self, obj: Any) -> Any:
        """Store a copy under a new resourceVersion."""
        self._revision += 1
        stored = type(obj)()
        stored.CopyFrom(obj)
        stored.metadata.resourceVersion = str(self._revision)
        self._objects[kinds.of(obj), key_of(obj)] = stored
        return stored

    def drop(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        del self._objects[kind, ObjectKey(namespace, name)]

    def lister(self, kind: Kind[Any]) -> _Lister:
        return _Lister(self, kind)

    def listers(self) -> dict[Kind[Any], _Lister]:
        return {kind: _Lister(self, kind) for kind in kinds.KINDS}

    def find(self, kind: Kind[Any], name: str, namespace: str = "") -> Any | None:
        return self._objects.get((kind, ObjectKey(namespace, name)))

    def all_of(self, kind: Kind[Any]) -> list[Any]:
        return [obj for (k, _), obj in self._objects.items() if k is kind]

    def _note(self, *request: Any) -> None:
        self.requests.append(request)
        rejection = self.reject(request)
        if rejection is not None:
            raise rejection

    async def update(self, obj: Any, *, subresource: str = "", dry_run: bool = False) -> Any:
        self._note("update", kinds.of(obj).kind, str(key_of(obj)))
        current = self.find(kinds.of(obj), obj.metadata.name, obj.metadata.namespace)
        if current is None:
            raise errors.not_found(kinds.of(obj), obj.metadata.name)
        if current.metadata.resourceVersion != obj.metadata.resourceVersion:
            raise errors.conflict(kinds.of(obj), obj.metadata.name)
        return self.put(obj)

    async def patch(
        self, kind: Kind[Any], name: str, namespace: str, patch: object, *, subresource: str = ""
    ) -> Any:
        self._note("patch", kind.kind, f"{namespace}/{name}", subresource, patch)
        return self.find(kind, name, namespace)

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> bool:
        self._note("delete", kind.kind, f"{namespace}/{name}", options)
        obj = self.find(kind, name, namespace)
        if obj is None:
            raise errors.not_found(kind, name)
        obj.metadata.deletionTimestamp.CopyFrom(to_time(1.0))
        return False

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        self._note("bind", f"{namespace}/{name}", node, uid)


class _Lister:
    def __init__(self, api: FakeApi, kind: Kind[Any]) -> None:
        self._api = api
        self._kind = kind

    def get(self, name: str, namespace: str = "") -> Any | None:
        return self._api.find(self._kind, name, namespace)

    def list(self, namespace: str = "") -> list[Any]:
        return [o for o in self._api.all_of(self._kind) if namespace in ("", o.metadata.namespace)]
