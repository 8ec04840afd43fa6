"""Objects whose changes can be undone, for simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.objects import ObjectKey, key_of

M = TypeVar("M", bound=Message)
_OnAdd: TypeAlias = Callable[[M], None]
_OnUpdate: TypeAlias = Callable[[M, M], None]
_OnDelete: TypeAlias = Callable[[M, bool], None]


class ForkableTable(Generic[M]):
    """Hold objects by key, with forks that can be committed or reverted.

    It is a lister, and calls handlers as an informer does: also for the changes that `revert` undoes.
    """

    def __init__(self) -> None:
        self.changes = 0  # as `Informer.changes`: what is derived from the objects is valid for one count
        self._objects: dict[ObjectKey, M] = {}
        self._forks: list[
            dict[ObjectKey, M | None]
        ] = []  # values before each fork; None: there was no object
        self._handlers: list[tuple[_OnAdd[M] | None, _OnUpdate[M] | None, _OnDelete[M] | None]] = []

    def get(self, name: str, namespace: str = "") -> M | None:
        """Return the object, or None where there is no such object."""
        return self._objects.get(ObjectKey(namespace, name))

    def list(self, namespace: str = "") -> list[M]:
        """Return the objects of a namespace; of all namespaces without one."""
        return [obj for key, obj in self._objects.items() if namespace in ("", key.namespace)]

    def add_handler(
        self,
        *,
        on_add: _OnAdd[M] | None = None,
        on_update: _OnUpdate[M] | None = None,
        on_delete: _OnDelete[M] | None = None,
    ) -> None:
        """Call these functions after each change, as `Informer.add_handler`; not for objects already here."""
        self._handlers.append((on_add, on_update, on_delete))

    def reset(self, objects: Iterable[M]) -> None:
        """Replace the contents by these objects.

        Raises:
            RuntimeError: a fork is open.
        """
        if self._forks:
            raise RuntimeError("a fork is open")
        new = {key_of(obj): obj for obj in objects}
        for key in self._objects.keys() - new.keys():
            self._write(key, None)
        for key, obj in new.items():
            self._write(key, obj)

    def put(self, obj: M) -> None:
        self._change(key_of(obj), obj)

    def drop(self, key: ObjectKey) -> None:
        self._change(key, None)

    def fork(self) -> None:
        """Begin changes that the matching `commit` keeps, or `revert` undoes."""
        self._forks.append({})

    def commit(self) -> None:
        """Keep the changes since the last fork; an outer fork can still revert them."""
        kept = self._forks.pop()
        if self._forks:
            for key, former in kept.items():
                self._forks[-1].setdefault(key, former)

    def revert(self) -> None:
        """Undo the changes since the last fork."""
        for key, former in self._forks.pop().items():
            self._write(key, former)

    def _change(self, key: ObjectKey, new: M | None) -> None:
        if self._forks:
            self._forks[-1].setdefault(key, self._objects.get(key))
        self._write(key, new)

    def _write(self, key: ObjectKey, new: M | None) -> None:
        old = self._objects.get(key)
        if old is new:
            return
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        self.changes += 1
        self._update_indexes(old, new)
        for on_add, on_update, on_delete in self._handlers:
            if old is not None and new is not None:
                if on_update is not None:
                    on_update(old, new)
            elif new is not None:
                if on_add is not None:
                    on_add(new)
            elif old is not None and on_delete is not None:
                on_delete(old, False)

    def _update_indexes(self, old: M | None, new: M | None) -> None:
        """Update the indexes that a subclass derives from the objects; called before the handlers."""
