"""A watch cache and a lookup that hold what a test puts in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from nominee.apiserver.admission.interface import Lookup
from nominee.machinery.api.kinds import Kind


@dataclass(frozen=True)
class Found:
    """A cached object."""

    message: Any
    revision: int

    @property
    def name(self) -> str:
        return str(self.message.metadata.name)

    @property
    def namespace(self) -> str:
        return str(self.message.metadata.namespace)


class Objects:
    """The parts of `nominee.apiserver.cache.watch_cache.WatchCache` and
    `nominee.apiserver.admission.interface.Lookup` that access uses.
    """

    def __init__(self) -> None:
        self._kinds: dict[Kind[Any], dict[tuple[str, str], Found]] = {}
        self._changes: dict[Kind[Any], int] = {}
        self.revision = 0
        self.lists = 0

    def put(self, kind: Kind[Any], obj: Any) -> Any:
        self.revision += 1
        self._changes[kind] = self.revision
        key = (obj.metadata.namespace, obj.metadata.name)
        self._kinds.setdefault(kind, {})[key] = Found(obj, self.revision)
        return obj

    def of(self, kind: Kind[Any]) -> Any:
        changes = self._changes

        class Cache:
            @property
            def last_change(self) -> int:
                return changes.get(kind, 0)

        return Cache()

    def get(self, kind: Kind[Any], namespace: str, name: str) -> Found | None:
        return self._kinds.get(kind, {}).get((namespace, name))

    @property
    def lookup(self) -> Lookup:
        return cast("Lookup", self)

    def list(self, kind: Kind[Any], namespace: str = "") -> Sequence[Found]:
        self.lists += 1
        return [
            found
            for (where, _), found in sorted(self._kinds.get(kind, {}).items())
            if namespace in ("", where)
        ]

    async def find(self, kind: Kind[Any], namespace: str, name: str) -> Found | None:
        return self.get(kind, namespace, name)

    async def known(self, kind: Kind[Any]) -> Sequence[Found]:
        return self.list(kind)
