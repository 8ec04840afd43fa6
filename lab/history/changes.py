"""Describe a write for a person: the fields that it changed. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.wire import codec

FIELDS_MAX: Final = 8
"""Changed fields that are described; more are counted."""
_TEXT_MAX: Final = 80
_IDENTITIES: Final = ("type", "name", "key", "ip")
"""Fields that identify an item of a list, as a condition's type."""
_IGNORED: Final = frozenset({"metadata.managedFields"})


def describe(revision: Revision) -> list[str]:
    """Return a headline for the write, and a line for each field that it changed."""
    when = rfc3339_micro(revision.time) if revision.time else "time unknown"
    lines = [f"revision {revision.revision}, {when}: {revision.subject} {_verb(revision)}"]
    if revision.kind is None or (revision.value is None and not revision.is_state):
        return lines
    changes = list(changed_fields(revision.previous, revision.object))
    lines += changes[:FIELDS_MAX]
    if len(changes) > FIELDS_MAX:
        lines.append(f"... {len(changes) - FIELDS_MAX} more fields")
    return lines


def _verb(revision: Revision) -> str:
    if revision.is_state:
        return "was known to be" if revision.value is not None else "was gone"
    if revision.value is None:
        return "deleted"
    return "created" if revision.previous_value is None else "updated"


def changed_fields(before: Message | None, after: Message | None) -> Iterator[str]:
    """Yield `path: old -> new` for each field that differs, status and spec before metadata."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    paths = [*new, *(path for path in old if path not in new)]
    for path in sorted(paths, key=lambda path: (path.startswith("metadata"), paths.index(path))):
        if old.get(path) == new.get(path):
            continue
        if path not in old:
            yield f"{path}: {_text(new[path])}"
        else:
            yield f"{path}: {_text(old[path])} -> {_text(new.get(path))}"


def _leaves(obj: Message | None) -> Iterator[tuple[str, object]]:
    if obj is not None:
        yield from _walk("", codec.to_json(obj))


def _walk(path: str, value: object) -> Iterator[tuple[str, object]]:
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


def _identity(item: object, index: int) -> str:
    if isinstance(item, Mapping):
        for name in _IDENTITIES:
            if isinstance(item.get(name), str):
                return str(item[name])
    return str(index)


def _text(value: object) -> str:
    text = "unset" if value is None else json.dumps(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
