"""Kinds that two APIs have and that are stored once (`kinds.STORED_AS`): what is stored, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.cache.kind_cache import Convert
from apiserver.objects.cached_object import CachedObject
from apiserver.registry import autoscalers, events
from machinery.api import kinds
from machinery.api.kinds import Kind

# How each is shown, and how it is stored.
_FACES: dict[Kind[Any], tuple[Convert, Callable[[Any], Any]]] = {
    kinds.EVENTS_EVENT: (events.convert, events.to_core),
    kinds.HORIZONTAL_POD_AUTOSCALER_V1: (autoscalers.convert, autoscalers.to_v2),
}


def stored_kind(kind: Kind[Any]) -> Kind[Any]:
    return kinds.STORED_AS.get(kind, kind)


def conversion(kind: Kind[Any]) -> Convert | None:
    face = _FACES.get(kind)
    return face[0] if face is not None else None


def shown(kind: Kind[Any], stored: CachedObject) -> CachedObject:
    face = _FACES.get(kind)
    return stored.converted(face[0]) if face is not None else stored


def as_stored(kind: Kind[Any], body: Any) -> Any:
    face = _FACES.get(kind)
    return face[1](body) if face is not None and isinstance(body, kind.message) else body
