"""A local copy of the objects of one kind, kept by a reflector, with handlers and indexes.

Handlers are plain functions called in order on the event loop; they see each change once, and a state that
goes forward. Objects are replaced, never changed: a handler or reader may keep them, and must not write to
them. A handler that raises ends `run`, and with it the process: it is a bug.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import anyio
import anyio.lowlevel

from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.objects import ObjectKey, key_of, metadata_of
from nominee.machinery.client.api_client import Client, WatchEvent
from nominee.machinery.client.watches.reflector import Reflector
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.values.scalars import Json

IndexFunction = Callable[[M], Iterable[str]]
_YIELD_EVERY = 200
"""Objects between two rests, so that a big list does not hold up everything else."""


@dataclass(frozen=True, slots=True)
class _Handler(Generic[M]):
    on_add: Callable[[M], None] | None
    on_update: Callable[[M, M], None] | None
    on_delete: Callable[[M, bool], None] | None


class _Index(Generic[M]):
    """Objects by the values that a function finds in them."""

    __slots__ = ("_by_value", "_function")

    def __init__(self, function: IndexFunction[M]) -> None:
        self._function = function
        self._by_value: dict[str, dict[ObjectKey, M]] = {}

    def put(self, key: ObjectKey, old: M | None, new: M | None) -> None:
        before = set(self._function(old)) if old is not None else set()
        after = set(self._function(new)) if new is not None else set()
        for value in before - after:
            objects = self._by_value[value]
            del objects[key]
            if not objects:
                del self._by_value[value]
        if new is not None:
            for value in after:
                self._by_value.setdefault(value, {})[key] = new

    def get(self, value: str) -> list[M]:
        return list(self._by_value.get(value, {}).values())

    def values(self) -> list[str]:
        return list(self._by_value)


class Informer(Generic[M]):
    """The objects of a kind (of one namespace, or of a selector), as they are a moment after each change."""

    def __init__(
        self,
        client: Client,
        kind: Kind[M],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
        indexers: Mapping[str, IndexFunction[M]] | None = None,
    ) -> None:
        self.kind = kind
        self._scope = (namespace, label_selector, field_selector)
        self._reflector = Reflector(
            client,
            kind,
            replace=self._replace,
            apply=self._apply,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            clock=clock,
            rng=rng,
        )
        self._objects: dict[ObjectKey, M] = {}
        self.changes = 0  # how often an object came, changed or went: a reader's derived data is of one count
        self._unseen_deletions = 0  # of objects that this copy never had: a fault may merge events of a watch
        self._indexes: dict[str, _Index[M]] = {}
        self._handlers: list[_Handler[M]] = []
        self._batch_handlers: list[Callable[[], None]] = []
        self.replacing = False
        """Whether handlers see the differences of a list now, and not events of the watch."""
        self._synced = anyio.Event()
        self._running = False
        for name, function in (indexers or {}).items():
            self.add_index(name, function)

    def add_handler(
        self,
        *,
        on_add: Callable[[M], None] | None = None,
        on_update: Callable[[M, M], None] | None = None,
        on_delete: Callable[[M, bool], None] | None = None,
    ) -> None:
        """Call these for each change: (new), (old, new), (last known, stale).

        A `stale` deletion was found by a list: the object's last state is not known. A handler that is added
        late first gets an addition for each object. An object that was deleted and made again
        under the same name between two looks is a deletion and an addition, never an update.
        """
        handler = _Handler(on_add, on_update, on_delete)
        self._handlers.append(handler)
        if on_add is not None:
            for obj in list(self._objects.values()):
                on_add(obj)

    def on_change(self, changed: Callable[[M], None], *, deletions: bool = True) -> None:
        """Call this with each object that is added or changed, and with `deletions` each deleted one."""
        self.add_handler(
            on_add=changed,
            on_update=lambda _, new: changed(new),
            on_delete=(lambda last, _: changed(last)) if deletions else None,
        )

    def add_batch_handler(self, on_batch: Callable[[], None]) -> None:
        """Call this after each message from the API server, when the handlers have seen all of it."""
        self._batch_handlers.append(on_batch)

    def add_index(self, name: str, function: IndexFunction[M]) -> None:
        """Keep objects by the values that a pure function finds in them (`by_index`)."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name} already")
        index = self._indexes[name] = _Index(function)
        for key, obj in self._objects.items():
            index.put(key, None, obj)

    async def run(self) -> None:
        """List, watch, list again when need be; until cancelled."""
        if self._running:
            raise RuntimeError(f"the informer of {self.kind.group_resource} runs already")
        self._running = True
        try:
            await self._reflector.run()
        finally:
            self._running = False

    async def wait_synced(self) -> None:
        """Wait until the first list is here and the handlers have seen it."""
        await self._synced.wait()

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """The newest revision that this copy reflects, "" before the first list."""
        return self._reflector.resource_version

    @property
    def gaps(self) -> int:
        """How often an object may have come and gone without an event of it.

        A list shows what exists, and a watch whose events are merged the end of an object alone.
        """
        return self._reflector.lists + self._unseen_deletions

    def get(self, name: str, namespace: str = "") -> M | None:
        return self._objects.get(ObjectKey(namespace, name))

    def get_by_key(self, key: ObjectKey) -> M | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> list[M]:
        """Return all objects, or those of a namespace, in no order."""
        if not namespace:
            return list(self._objects.values())
        return [obj for key, obj in self._objects.items() if key.namespace == namespace]

    def by_index(self, index: str, value: str) -> Sequence[M]:
        """Return the objects that have a value in an index.

        Raises:
            KeyError: the index was not added.
        """
        return self._indexes[index].get(value)

    def index_values(self, index: str) -> Sequence[str]:
        """Return all values of an index that some object has."""
        return self._indexes[index].values()

    def __len__(self) -> int:
        return len(self._objects)

    def state(self) -> dict[str, Json]:
        """Return the kind and selectors of the copy, and the resourceVersion of each object, as JSON."""
        namespace, label_selector, field_selector = self._scope
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "namespace": namespace,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "objects": {str(key): metadata_of(obj).resourceVersion for key, obj in self._objects.items()},
        }

    # Changes.

    def _put(self, obj: M) -> None:
        metadata = metadata_of(obj)
        key = ObjectKey(metadata.namespace, metadata.name)
        old = self._objects.get(key)
        if old is not None and metadata_of(old).uid != metadata.uid:
            self._drop(key, old, stale=True)
            old = None
        self._objects[key] = obj
        self.changes += 1
        for index in self._indexes.values():
            index.put(key, old, obj)
        for handler in self._handlers:
            if old is None:
                if handler.on_add is not None:
                    handler.on_add(obj)
            elif handler.on_update is not None:
                handler.on_update(old, obj)

    def _drop(self, key: ObjectKey, last: M, *, stale: bool) -> None:
        """Remove an object; handlers get `last`."""
        old = self._objects.pop(key)
        self.changes += 1
        for index in self._indexes.values():
            index.put(key, old, None)
        for handler in self._handlers:
            if handler.on_delete is not None:
                handler.on_delete(last, stale)

    def _remove(self, last: M) -> None:
        """Remove an object; of one that merged events did not show the former one of its name."""
        key = key_of(last)
        old = self._objects.get(key)
        is_shown = old is not None and metadata_of(old).uid == metadata_of(last).uid
        self._unseen_deletions += not is_shown
        if old is not None:
            self._drop(key, last if is_shown else old, stale=not is_shown)

    async def _replace(self, items: Sequence[M]) -> None:
        """Make the copy equal to a list, telling handlers of the differences; deletions come first."""
        self.replacing = True
        listed = {key_of(obj) for obj in items}
        for key in [key for key in self._objects if key not in listed]:
            self._drop(key, self._objects[key], stale=True)
        for count, obj in enumerate(items, 1):
            old = self._objects.get(key_of(obj))
            if old is None or _version(old) != _version(obj):
                self._put(obj)
            if count % _YIELD_EVERY == 0:
                await anyio.lowlevel.checkpoint()
        self.replacing = False
        for on_batch in self._batch_handlers:
            on_batch()
        self._synced.set()

    async def _apply(self, batch: Sequence[WatchEvent[M]]) -> None:
        for count, event in enumerate(batch, 1):
            if event.type == "DELETED":
                self._remove(event.object)
            elif event.type != "BOOKMARK":
                self._put(event.object)
            if count % _YIELD_EVERY == 0:
                await anyio.lowlevel.checkpoint()
        for on_batch in self._batch_handlers:
            on_batch()


def _version(obj: Any) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resourceVersion
