"""The trace of a history: the writes that change something, in short.

A write is named by the kind and the changes: fields that appeared, went or changed below metadata, spec and
status, and transitions of conditions and phases; these also tell which process made it. Values that differ
from run to run (names, uids, times) are no part of it. Events and the renewals of leases are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.message import Message

from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.history.revision import Revision

_PARTS = ("metadata", "spec", "status")
_IGNORED = frozenset({"managedFields", "resourceVersion", "generation", "observedGeneration", "uid"})
_NO_KINDS = frozenset({"Event", "FlowSchema"})
_HOLDER = "spec.holderIdentity"


def trace(revisions: Iterable[Revision]) -> list[TracedWrite]:
    """Return the writes that change something, from the first one on."""
    found: list[TracedWrite] = []
    began: float | None = None
    for revision in revisions:
        began = revision.time if began is None else began
        kind = revision.kind
        if kind is None or revision.is_state or kind.kind in _NO_KINDS:
            continue
        changes = tuple(_changes(kind.kind, revision.previous, revision.object))
        if changes:
            seconds = round(revision.time - began, 3)
            found.append(TracedWrite(seconds, revision.revision, revision.subject, changes))
    return found


def _changes(kind: str, before: Message | None, after: Message | None) -> Iterator[str]:
    if before is None or after is None:
        yield "created" if before is None else "deleted"
        if after is None:
            return
    old, new = _fields(before), _fields(after)
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if kind == "Lease" and name != _HOLDER:
            continue
        if name == "status.conditions":
            yield from _transitions(was, now)
        elif name == "status.phase":
            yield f"phase {was or ''}>{now or ''}"
        elif before is not None:
            sign = "+" if was is None else "-" if now is None else "~"
            yield f"{sign}{name}"


def _fields(message: Message | None) -> dict[str, object]:
    """Return the fields of metadata, spec and status by path."""
    found: dict[str, object] = {}
    if message is None:
        return found
    for descriptor, value in message.ListFields():
        if descriptor.name not in _PARTS:
            found[descriptor.name] = value
            continue
        for inner, part in value.ListFields():
            if inner.name not in _IGNORED and part != "":
                found[f"{descriptor.name}.{inner.name}"] = part
    return found


def _transitions(before: object, after: object) -> Iterator[str]:
    """Yield the conditions whose status or reason changed."""
    old, new = _conditions(before), _conditions(after)
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name, ""), new.get(name, "")
        if was != now:
            yield f"{name} {was}>{now}"


def _conditions(conditions: object) -> dict[str, str]:
    if not isinstance(conditions, Iterable):
        return {}
    return {
        each.type: f"{each.status}/{getattr(each, 'reason', '')}".rstrip("/")
        for each in conditions
        if hasattr(each, "type") and hasattr(each, "status")
    }
