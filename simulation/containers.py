"""Find the containers that the tasks of a simulated process can reach, by class and attribute."""

from __future__ import annotations

import asyncio
import functools
import gc
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from google.protobuf.message import Message

OURS: Final = "nominee."
_OUTSIDE: Final = ("nominee.simulation.", "nominee.lab.", "nominee.pb.")
"""The modules whose objects are not the process's own."""
_TYPES: Final = (dict, list, set, frozenset, deque)
_LEAVES: Final = (
    type,
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    functools._lru_cache_wrapper,
    asyncio.AbstractEventLoop,
    asyncio.Task,
    Context,
    Message,
    str,
    bytes,
    int,
    float,
    type(None),
)

Container: TypeAlias = dict[object, object] | list[object] | set[object] | frozenset[object] | deque[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An attribute of a class of the product. Its full name is `module.Class.attribute.`, and ends so.

    `is_value`: objects of the class do not change. `is_whole`: the container is the attribute's value, and
    not something within it, such as the contents of a library's cache, which has a limit.
    """

    full: str
    name: str
    is_value: bool
    is_whole: bool


_Found: TypeAlias = tuple[Place | None, object]
_Visit: TypeAlias = Callable[[Place | None, object], list[_Found]]
"""Lists the references of an object and where they are, but for objects that are known to have none."""


def containers(roots: Iterable[object], without: tuple[str, ...] = ()) -> Iterator[tuple[Place, Container]]:
    """Yield each container that is in an attribute, or within one.

    Objects of modules or classes, and attributes, whose full names begin as one of `without` are passed over,
    with all that they alone refer to.
    """
    visits, leaves = _visits_of_classes(without)
    outside = (*_OUTSIDE, *without)
    waiting: list[_Found] = [(None, each) for each in roots]
    seen = {id(each) for _, each in waiting}
    while waiting:
        place, value = waiting.pop()
        kind = type(value)
        if kind in leaves:
            continue
        if kind not in visits:
            if _is_leaf(kind, outside):
                leaves.add(kind)
                continue
            visits[kind] = _visit_of(kind, leaves, without)
        if place is not None and isinstance(value, _TYPES):
            yield place, value
        if place is not None and place.is_whole:
            place = _within(place)
        for found in visits[kind](place, value):
            if id(found[1]) not in seen:
                seen.add(id(found[1]))
                waiting.append(found)


@functools.cache
def _visits_of_classes(_without: tuple[str, ...]) -> tuple[dict[type, _Visit], set[type]]:
    """Return how to visit the objects of classes, and the classes of leaves; all runs fill them."""
    return {}, set()


@functools.cache
def _within(place: Place) -> Place:
    return replace(place, is_whole=False)


def _is_leaf(kind: type, outside: tuple[str, ...]) -> bool:
    return issubclass(kind, _LEAVES) or f"{kind.__module__}.{kind.__qualname__}.".startswith(outside)


def _visit_of(kind: type, leaves: Set[type], without: tuple[str, ...]) -> _Visit:
    if kind.__module__.startswith(OURS) and not issubclass(kind, (*_TYPES, tuple, types.FunctionType)):
        return _attributes(kind, leaves, without)
    references = _references_of(kind)
    return lambda place, value: [(place, each) for each in references(value) if type(each) not in leaves]


def _references_of(kind: type) -> Callable[..., Iterable[object]]:
    if issubclass(kind, dict):
        return dict.values
    if issubclass(kind, types.FunctionType):
        return lambda value: getattr(value, "__closure__", None) or ()
    return iter if issubclass(kind, (*_TYPES, tuple)) else gc.get_referents


def _attributes(kind: type, leaves: Set[type], without: tuple[str, ...]) -> _Visit:
    slots = [name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ()) if name[:2] != "__"]
    parameters = getattr(kind, "__dataclass_params__", None)
    is_value = parameters is not None and parameters.frozen

    @functools.cache
    def place(name: str) -> Place:
        text = f"{kind.__qualname__}.{name}"
        return Place(full=f"{kind.__module__}.{text}.", name=text, is_value=is_value, is_whole=True)

    @functools.cache
    def is_followed(name: str) -> bool:
        return not place(name).full.startswith(without)

    def visit(_: Place | None, value: object) -> list[_Found]:
        found = [(name, getattr(value, name, None)) for name in slots]
        found += getattr(value, "__dict__", {}).items()
        return [(place(name), each) for name, each in found if type(each) not in leaves and is_followed(name)]

    return visit
