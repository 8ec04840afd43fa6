"""Events: one store for both API groups, kept for an hour.

What is stored is the core v1 Event; events.k8s.io shows it by its own names. Source: kube-apiserver 1.36,
pkg/apis/events/v1/conversion.go, registry/core/event, validation/events.go.
"""

from __future__ import annotations

from typing import Any

from apiserver.objects.cached_object import CachedObject
from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import events as validation
from machinery.api.errors import Cause
from machinery.api.kinds import EVENT, EVENTS_EVENT
from machinery.api.pb import core, events
from machinery.wire import envelope

TTL_SECONDS = 3600
_SAME = (
    "metadata",
    "series",
    "related",
    "reportingInstance",
    "action",
    "reason",
    "type",
    "eventTime",
)
# core name -> events.k8s.io name
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_NEW = {**{name: name for name in _SAME}, **_RENAMED}


def _move(source: Any, target: Any, names_of: dict[str, str]) -> None:
    for descriptor, value in source.ListFields():
        name = names_of[descriptor.name]
        if hasattr(value, "SerializeToString"):
            # The series is a message of each group's own, field for field the same.
            getattr(target, name).MergeFromString(value.SerializeToString())
            getattr(target, name).SetInParent()
        else:
            setattr(target, name, value)


_TO_CORE = {new: old for old, new in _TO_NEW.items()}


def to_core(event: events.Event) -> core.Event:
    """An events.k8s.io Event as it is stored."""
    stored = core.Event()
    _move(event, stored, _TO_CORE)
    return stored


def to_events(stored: core.Event) -> events.Event:
    """A stored Event as events.k8s.io shows it."""
    event = events.Event()
    _move(stored, event, _TO_NEW)
    return event


def convert(stored: CachedObject) -> CachedObject:
    """What a watch or a list of events.k8s.io shows."""
    shown = to_events(stored.message)
    shown.metadata.resourceVersion = ""
    data = envelope.encode(shown)
    return CachedObject(EVENTS_EVENT, stored.namespace, stored.name, stored.revision, stored=data)


class EventStrategy(Strategy):
    """Events as core v1 has always taken them."""

    collects_garbage = False
    ttl_seconds = TTL_SECONDS

    judges_metadata = False

    def __init__(self) -> None:
        super().__init__(EVENT)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return validation.event(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return validation.event(new)


class NewEventStrategy(EventStrategy):
    """Events that came by events.k8s.io: complete, and never changed but for their series."""

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return validation.new_event(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return validation.new_event_change(new, old)
