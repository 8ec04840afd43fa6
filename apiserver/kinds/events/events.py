"""Events of events.k8s.io: the stored core v1 Event by other names.

Source: kube-apiserver 1.36, pkg/apis/events/v1/conversion.go and pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from nominee.apiserver.kinds.core import events as core_events
from nominee.apiserver.kinds.core.events import EventStrategy, is_set, validate
from nominee.apiserver.kinds.rules import Conversion, KindRules
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.selectable_fields import SelectableFields
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import EVENTS_EVENT
from nominee.machinery.api.pb import core, events
from nominee.machinery.wire import envelope

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
_TO_CORE = {new: old for old, new in _TO_NEW.items()}
_TYPES = ("Normal", "Warning")
# What an event that came by events.k8s.io keeps; upstream looks at the reason twice.
_KEPT = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason",
    "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
# events.k8s.io asks by its own names for the fields of the core Event that lies in etcd.
_LABELS = {
    "metadata.name": "metadata.name",
    "metadata.namespace": "metadata.namespace",
    "reason": "reason",
    "type": "type",
    "reportingController": "reportingComponent",
    **{
        f"regarding.{field}": f"involvedObject.{field}"
        for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}


class NewEventStrategy(EventStrategy):
    """Events that came by events.k8s.io: complete, and never changed but for their series."""

    def validate(self, new: core.Event, env: Environment) -> list[Cause]:
        return _validate(new)

    def validate_update(self, new: core.Event, old: core.Event, env: Environment) -> list[Cause]:
        return _validate_change(new, old)


def _validate(obj: core.Event) -> list[Cause]:
    """Check an Event of events.k8s.io, which must not have the deprecated fields of core/v1 Events."""
    errors = validate(obj)
    errors += metadata.object_meta(obj.metadata, namespaced=True, name_rule=names.dns_subdomain)
    errors += _series(obj)
    if not is_set(obj.eventTime):
        errors.append(field.required("eventTime"))
    if obj.type not in _TYPES:
        errors.append(field.invalid("type", "", f"has invalid value: {obj.type}"))
    unset = "needs to be unset"
    errors += [
        field.invalid(name, "", unset)
        for name, given in (
            ("firstTimestamp", is_set(obj.firstTimestamp)),
            ("lastTimestamp", is_set(obj.lastTimestamp)),
            ("count", obj.count != 0),
            ("source", bool(obj.source.component or obj.source.host)),
        )
        if given
    ]
    return errors


def _series(obj: core.Event) -> Iterator[Cause]:
    if not obj.HasField("series"):
        return
    if obj.series.count < 2:
        yield field.invalid("series.count", "", "should be at least 2")
    if not is_set(obj.series.lastObservedTime):
        yield field.required("series.lastObservedTime")


def _validate_change(new: core.Event, old: core.Event) -> list[Cause]:
    """By events.k8s.io only the series changes."""
    errors = validate(new) + metadata.object_meta_update(new.metadata, old.metadata)
    if new.series != old.series or new.HasField("series") != old.HasField("series"):
        errors += _series(new)
    for name in _KEPT:
        after, before = getattr(new, name), getattr(old, name)
        if after != before:
            shown = "reportingController" if name == "reportingComponent" else name
            errors.append(field.invalid(shown, _shown(after), field.IMMUTABLE))
    return errors


def _shown(value: object) -> object:
    return dump(value) if isinstance(value, Message) else value


def _move(source: Message, target: Message, names_of: dict[str, str]) -> None:
    for descriptor, value in source.ListFields():
        name = names_of[descriptor.name]
        if hasattr(value, "SerializeToString"):
            # The series is a message of each group's own, field for field the same.
            getattr(target, name).MergeFromString(value.SerializeToString())
            getattr(target, name).SetInParent()
        else:
            setattr(target, name, value)


def to_core(event: events.Event) -> core.Event:
    """Return an events.k8s.io Event as it is stored."""
    stored = core.Event()
    _move(event, stored, _TO_CORE)
    return stored


def to_events(stored: core.Event) -> events.Event:
    """Return a stored Event as a message of events.k8s.io."""
    event = events.Event()
    _move(stored, event, _TO_NEW)
    return event


def convert(stored: CachedObject) -> CachedObject:
    """Return a stored Event as a watch or a list of events.k8s.io shows it."""
    shown = to_events(stored.message)
    shown.metadata.resourceVersion = ""
    data = envelope.encode(shown)
    return CachedObject(EVENTS_EVENT, stored.namespace, stored.name, stored.revision, stored=data)


RULES = KindRules(
    kind=kinds.EVENTS_EVENT,
    strategy=NewEventStrategy(kinds.EVENT),
    columns=core_events.RULES.columns,
    fields=SelectableFields(core_events.RULES.fields.values, _LABELS),
    conversion=Conversion(to_core, convert),
    created_by_update=True,
)
