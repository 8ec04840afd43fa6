"""The fields that a write changed, and the write described for a person. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json

FIELDS_MAX: Final = 8
"""Changed fields that are described; more are counted."""
_TEXT_MAX: Final = 80
_IDENTITIES: Final = ("type", "name", "key", "ip")
"""Fields that identify an item of a list, as a condition's type."""
_SECRET: Final = re.compile(
    r"(stringData|data)\.|metadata\.annotations\.kubectl\.kubernetes\.io/last-applied"
)
_HIDDEN: Final = "(hidden)"
POD_DEFAULTS: Final[Mapping[str, Json]] = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
    "imagePullPolicy": "Always",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
"""What the API server fills in, in a pod and its containers."""
ADMITTED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "kube-api-access-")
"""Beginnings of the names of tolerations, volumes and mounts that admission adds to a pod."""
_GENERATED: Final = re.compile(r"metadata\.(name|namespace|uid|generation|creationTimestamp)")
_IGNORED: Final = frozenset({"kind", "apiVersion", "metadata.managedFields"})


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs: its path, and its values before and after; None where it is unset."""

    path: str
    old: Json
    new: Json

    def __str__(self) -> str:
        if self.old is None:
            return f"{self.path}: {_text(self.new)}"
        return f"{self.path}: {_text(self.old)} -> {_text(self.new)}"


def describe(revision: Revision, writer: str = "", *, fields_max: int = FIELDS_MAX) -> list[str]:
    """Return a headline for the write, with its writer if one is given, and a line for each changed field."""
    when = rfc3339_micro(revision.time) if revision.time else "time unknown"
    made = f"{verb(revision)}, {writer}" if writer else verb(revision)
    lines = [f"revision {revision.revision}, {when}: {revision.subject} {made}"]
    if revision.kind is None or (revision.value is None and not revision.is_state):
        return lines
    changes = changed_fields(revision.previous, revision.object)
    lines += map(str, changes[:fields_max])
    if len(changes) > fields_max:
        lines.append(f"... {len(changes) - fields_max} more fields")
    return lines


def verb(revision: Revision) -> str:
    """Return the effect of the write on its object: created, updated or deleted."""
    if revision.is_state:
        return "was known to be" if revision.value is not None else "was gone"
    if revision.value is None:
        return "deleted"
    return "created" if revision.previous_value is None else "updated"


def changed_fields(before: Message | None, after: Message | None) -> list[FieldChange]:
    """Return the fields that differ; the values of Secrets are hidden.

    Status and spec are before metadata, and what the API server has filled in is at the end.
    """
    old, new = dict(_leaves(before)), dict(_leaves(after))
    is_secret = isinstance(before or after, core.Secret)

    def change(path: str) -> FieldChange:
        values: list[Json] = [old.get(path), new.get(path)]
        if is_secret and _SECRET.match(path):
            values = [None if value is None else _HIDDEN for value in values]
        return FieldChange(path, *values)

    found = [change(path) for path in dict.fromkeys([*new, *old]) if old.get(path) != new.get(path)]
    return sorted(found, key=lambda change: (_is_filled_in(change), change.path.startswith("metadata")))


def _is_filled_in(change: FieldChange) -> bool:
    """Return whether the API server, and not a client, has given the field its first value."""
    if change.old is not None:
        return False
    if _GENERATED.fullmatch(change.path) or any(f"[{name}" in change.path for name in ADMITTED):
        return True
    name = change.path.rpartition(".")[2]
    return name in POD_DEFAULTS and POD_DEFAULTS[name] == change.new


def shown_object(obj: Message) -> Json:
    """Return an object as JSON; the values of a Secret are hidden."""
    document = codec.to_json(obj)
    if isinstance(obj, core.Secret):
        for field in ("data", "stringData"):
            if field in document:
                document[field] = dict.fromkeys(document[field], _HIDDEN)
        annotations = document["metadata"].get("annotations", {})
        document["metadata"]["annotations"] = {
            key: _HIDDEN if _SECRET.match(f"metadata.annotations.{key}") else value
            for key, value in annotations.items()
        }
    return document


def _leaves(obj: Message | None) -> Iterator[tuple[str, Json]]:
    if obj is not None:
        yield from _walk("", codec.to_json(obj))


def _walk(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    if path in _IGNORED:
        return
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _walk(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(f"{path}[{_identity(part, index)}]", part)
    else:
        yield path, value


def _identity(item: Json, index: int) -> str:
    if isinstance(item, Mapping):
        for name in _IDENTITIES:
            if isinstance(item.get(name), str):
                return str(item[name])
    return str(index)


def _text(value: Json) -> str:
    text = "unset" if value is None else json.dumps(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
