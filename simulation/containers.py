"""Find the containers of a simulated process: what its tasks can reach, by class and attribute."""

from __future__ import annotations

import asyncio
import functools
import gc
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Place:
    """An attribute of a class of the product. Its full name is `module.Class.attribute.`, and ends so.

    `is_value`: objects of the class do not change.
    """

    full: str
    name: str
    is_value: bool


_Found: TypeAlias = tuple[Place | None, object]
_Visit: TypeAlias = Callable[[Place | None, object], Iterable[_Found]]


def containers(
    roots: Iterable[object], without: tuple[str, ...] = ()
) -> Iterator[tuple[Place, Container, bool]]:
    """Yield each container that is in an attribute, and whether it is its value.

    Another one is within this value, which may be a cache with a limit of a library.

    Objects of modules or classes whose names begin as one of `without` are passed over, with all that they
    alone refer to.
    """
    outside = (*_OUTSIDE, *without)
    visits: dict[type, _Visit | None] = {}
    waiting: list[_Found] = [(None, each) for each in roots]
    seen = {id(each) for _, each in waiting}
    while waiting:
        place, value = waiting.pop()
        visit = visits[type(value)] if type(value) in visits else _visit_of(type(value), outside)
        assert visit is not None, "leaves do not wait"
        visits[type(value)] = visit
        is_ours = f"{type(value).__module__}.".startswith(OURS)
        for inner, each in visit(place, value):
            kind = type(each)
            if kind not in visits:
                visits[kind] = _visit_of(kind, outside)
            if visits[kind] is None or id(each) in seen:
                continue
            seen.add(id(each))
            waiting.append((inner, each))
            if inner is not None and isinstance(each, _TYPES):
                yield inner, each, is_ours


def _visit_of(kind: type, outside: tuple[str, ...]) -> _Visit | None:
    """Return the function that lists the references of an object of a type; None: it has none that count."""
    module = f"{kind.__module__}."
    if issubclass(kind, _LEAVES) or f"{module}{kind.__qualname__}.".startswith(outside):
        return None
    if issubclass(kind, dict):
        return lambda place, value: [(place, each) for each in value.values()]  # type: ignore[attr-defined]
    if issubclass(kind, (*_TYPES, tuple)):
        return lambda place, value: [(place, each) for each in value]  # type: ignore[attr-defined]
    if issubclass(kind, types.FunctionType):
        return lambda place, value: [(place, each) for each in getattr(value, "__closure__", None) or ()]
    if not module.startswith(OURS):
        return lambda place, value: [(place, each) for each in gc.get_referents(value)]
    return _attributes(kind, module)


def _attributes(kind: type, module: str) -> _Visit:
    slots = [name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ()) if name[:2] != "__"]
    parameters = getattr(kind, "__dataclass_params__", None)
    is_value = parameters is not None and parameters.frozen
    places: dict[str, Place] = {}

    def place_of(name: str) -> Place:
        if name not in places:
            text = f"{kind.__qualname__}.{name}"
            places[name] = Place(f"{module}{text}.", text, is_value)
        return places[name]

    def visit(_: Place | None, value: object) -> list[_Found]:
        found = [(place_of(name), each) for name, each in getattr(value, "__dict__", {}).items()]
        found += [(place_of(name), getattr(value, name, None)) for name in slots]
        return found  # type: ignore[return-value]  # a Place is a Place | None

    return visit
