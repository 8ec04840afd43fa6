"""JSON patches (RFC 6902) as kube-apiserver applies them.

Its library differs from the RFC where clients have come to rely on it: `replace` of a missing member adds it,
a path may lack its first slash, indexes may be negative, `remove` of a missing member of an object is an
error. Source: tests/golden (api_patch.jsonl, family json). Every failure has one message.
"""

from __future__ import annotations

import copy
from typing import Any

from machinery.errors import StatusError
from machinery.pb import meta

OPERATIONS_MAX = 10_000
_COPIED_NODES_MAX = 100_000
_MISSING = object()


class Rejected(Exception):
    """The patch does not fit the document."""


def rejected() -> StatusError:
    """What a client is told, whatever it was."""
    text = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", text, details=meta.StatusDetails())


def apply(document: Any, patch: list[Any]) -> Any:
    """A new document; raises Rejected."""
    made = copy.deepcopy(document)
    copied = 0
    for operation in patch:
        if not isinstance(operation, dict):
            raise Rejected("an operation is no object")
        name, path = operation.get("op"), operation.get("path")
        if not isinstance(path, str):
            raise Rejected("no path")
        steps = _steps(path)
        if name in ("move", "copy"):
            source = operation.get("from")
            if not isinstance(source, str):
                raise Rejected("no from")
            start = _steps(source)
            value = _get(made, start)
            if value is _MISSING:
                raise Rejected("nothing at from")
            if name == "move":
                _remove(made, start)
            else:
                value = copy.deepcopy(value)
                copied += _size(value)
                if copied > _COPIED_NODES_MAX:
                    raise Rejected("too much is copied")
            made = _add(made, steps, value)
        elif name == "remove":
            _remove(made, steps)
        elif name in ("add", "replace", "test"):
            value = copy.deepcopy(operation.get("value"))
            if name == "test":
                _test(made, steps, value, "value" in operation)
            elif name == "add":
                made = _add(made, steps, value)
            else:
                made = _replace(made, steps, value)
        else:
            raise Rejected(f"unknown operation {name!r}")
    return made


def _steps(path: str) -> list[str]:
    # What precedes the first slash does not count.
    parts = path.split("/")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _index(text: str, length: int) -> int:
    try:
        index = int(text)
    except ValueError:
        raise Rejected(f"{text!r} is no index") from None
    if index < 0:
        index += length
    if index < 0:
        raise Rejected("an index before the first element")
    return index


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list):
        index = _index(step, len(value))
        return value[index] if index < len(value) else _MISSING
    return _MISSING


def _get(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = _child(document, step)
        if document is _MISSING:
            return _MISSING
    return document


def _parent(document: Any, steps: list[str]) -> tuple[Any, str]:
    if not steps:
        raise Rejected("the whole document")
    parent = _get(document, steps[:-1])
    if not isinstance(parent, dict | list):
        raise Rejected("no parent")
    return parent, steps[-1]


def _add(document: Any, steps: list[str], value: Any) -> Any:
    parent, last = _parent(document, steps)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        try:
            index = int(last)
        except ValueError:
            raise Rejected(f"{last!r} is no index") from None
        if index < 0:
            index += len(parent) + 1
        if not 0 <= index <= len(parent):
            raise Rejected("an index beyond the end")
        parent.insert(index, value)
    return document


def _replace(document: Any, steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    parent, last = _parent(document, steps)
    if isinstance(parent, dict):
        parent[last] = value
    else:
        index = _index(last, len(parent))
        if index >= len(parent):
            raise Rejected("an index beyond the end")
        parent[index] = value
    return document


def _remove(document: Any, steps: list[str]) -> None:
    parent, last = _parent(document, steps)
    if isinstance(parent, dict):
        if last not in parent:
            raise Rejected("nothing to remove")
        del parent[last]
    else:
        index = _index(last, len(parent))
        if index >= len(parent):
            raise Rejected("an index beyond the end")
        del parent[index]


def _test(document: Any, steps: list[str], value: Any, given: bool) -> None:
    found = _get(document, steps)
    if found is _MISSING or found is None:
        if value is not None or not given:
            raise Rejected("the test fails")
    elif not _equal(found, value):
        raise Rejected("the test fails")


def _equal(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1
