"""Events: as core v1 always took them, and complete as events.k8s.io wants them (kube-apiserver 1.36)."""

from __future__ import annotations

from typing import Any

from apiserver.validation import field, metadata, names
from apiserver.validation.go_dump import dump
from machinery.api.errors import Cause
from machinery.api.pb import core, meta

_TYPES = ("Normal", "Warning")
_NOTE_BYTES_MAX = 1024
_TEXT_BYTES_MAX = 128
# What an event that came by events.k8s.io keeps; upstream looks at the reason twice.
_KEPT = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason",
    "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip


def _is_set(time: meta.Time | meta.MicroTime) -> bool:
    return bool(time.seconds or time.nanos)


def event(obj: core.Event) -> list[Cause]:
    """What holds of all; those with a time of their own are the newer ones."""
    errors = _newer(obj) if _is_set(obj.eventTime) else _namespace(obj, ("", "default"))
    namespace = obj.metadata.namespace
    return errors + [field.invalid("namespace", namespace, p) for p in names.dns_subdomain(namespace)]


def _namespace(obj: core.Event, elsewhere: tuple[str, ...]) -> list[Cause]:
    """An event lies where its object does; those about cluster-scoped objects lie in `elsewhere`."""
    about, own = obj.involvedObject.namespace, obj.metadata.namespace
    if (own in elsewhere) if not about else own == about:
        return []
    return [field.invalid("involvedObject.namespace", about, "does not match event.namespace")]


def _newer(obj: core.Event) -> list[Cause]:
    errors = [] if obj.involvedObject.namespace else _namespace(obj, ("default", "kube-system"))
    if not obj.reportingComponent:
        errors.append(field.required("reportingController"))
    errors += [
        field.invalid("reportingController", obj.reportingComponent, problem)
        for problem in names.qualified_name(obj.reportingComponent)
    ]
    for name in ("reportingInstance", "action", "reason"):
        value = getattr(obj, name)
        if not value:
            errors.append(field.required(name))
        elif len(value.encode()) > _TEXT_BYTES_MAX:
            errors.append(field.invalid(name, "", f"can have at most {_TEXT_BYTES_MAX} characters"))
    if len(obj.message.encode()) > _NOTE_BYTES_MAX:
        errors.append(field.invalid("message", "", f"can have at most {_NOTE_BYTES_MAX} characters"))
    return errors


def new_event(obj: core.Event) -> list[Cause]:
    """Made by events.k8s.io: none of what only old events have."""
    errors = event(obj)
    errors += metadata.object_meta(obj.metadata, namespaced=True, name_rule=names.dns_subdomain)
    errors += _series(obj)
    if not _is_set(obj.eventTime):
        errors.append(field.required("eventTime"))
    if obj.type not in _TYPES:
        errors.append(field.invalid("type", "", f"has invalid value: {obj.type}"))
    unset = "needs to be unset"
    errors += [
        field.invalid(name, "", unset)
        for name, given in (
            ("firstTimestamp", _is_set(obj.firstTimestamp)),
            ("lastTimestamp", _is_set(obj.lastTimestamp)),
            ("count", obj.count != 0),
            ("source", bool(obj.source.component or obj.source.host)),
        )
        if given
    ]
    return errors


def _series(obj: core.Event) -> list[Cause]:
    if not obj.HasField("series"):
        return []
    errors: list[Cause] = []
    if obj.series.count < 2:
        errors.append(field.invalid("series.count", "", "should be at least 2"))
    if not _is_set(obj.series.lastObservedTime):
        errors.append(field.required("series.lastObservedTime"))
    return errors


def new_event_change(new: core.Event, old: core.Event) -> list[Cause]:
    """By events.k8s.io only the series changes."""
    errors = event(new) + metadata.object_meta_update(new.metadata, old.metadata)
    if new.series != old.series or new.HasField("series") != old.HasField("series"):
        errors += _series(new)
    for name in _KEPT:
        after, before = getattr(new, name), getattr(old, name)
        if after != before:
            shown = "reportingController" if name == "reportingComponent" else name
            errors.append(field.invalid(shown, _shown(after), field.IMMUTABLE))
    return errors


def _shown(value: Any) -> Any:
    return dump(value) if hasattr(value, "DESCRIPTOR") else value
