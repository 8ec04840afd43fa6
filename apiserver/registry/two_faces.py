"""Events have two groups and are stored once, as those of core/v1: what is stored, and what is shown."""

from __future__ import annotations

from typing import Any

from apiserver.cached_object import CachedObject
from apiserver.kind_cache import Convert
from apiserver.registry import events
from machinery import kinds
from machinery.kinds import Kind


def stored_kind(kind: Kind[Any]) -> Kind[Any]:
    return kinds.EVENT if kind is kinds.EVENTS_EVENT else kind


def conversion(kind: Kind[Any]) -> Convert | None:
    return events.convert if kind is kinds.EVENTS_EVENT else None


def shown(kind: Kind[Any], stored: CachedObject) -> CachedObject:
    return stored.converted(events.convert) if kind is kinds.EVENTS_EVENT else stored


def as_stored(kind: Kind[Any], body: Any) -> Any:
    return events.to_core(body) if kind is kinds.EVENTS_EVENT and isinstance(body, kind.message) else body
