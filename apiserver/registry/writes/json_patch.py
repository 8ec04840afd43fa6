"""JSON patches (RFC 6902) as kube-apiserver applies them.

Its library (evanphx/json-patch 4) differs from the RFC in ways that clients depend on: `replace` of a missing
member adds it, `copy` of one copies null, a path may lack its first slash, indexes may be negative, `remove`
of a missing member of an object is an error. Every failure has the same message.

Source: tests/golden (api_patch.jsonl, family json).
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import meta

OPERATIONS_MAX = 10_000
TEXT_MEMBERS = ("op", "path", "from")
"""Members of an operation that are strings."""
MEMBERS = (*TEXT_MEMBERS, "value")
"""All members of an operation."""
_COPIED_BYTES_MAX = 3 << 20
"""The limit of all copies of a patch, as JSON (kube-apiserver's JSONPatchMaxCopyBytes)."""
_DIGITS_MAX = 20
"""The digits of the largest int64: Python refuses to parse numbers of thousands of digits."""
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class Rejected(Exception):
    """A patch that does not fit the document."""


def rejected() -> StatusError:
    """Return the 422 that a client gets for any patch that cannot be applied."""
    text = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", text, details=meta.StatusDetails())


def apply(document: Any, patch: list[Any]) -> Any:
    """Return a new document with the patch applied.

    Raises: Rejected.
    """
    made = copy.deepcopy(document)
    copied = 0
    for operation in patch:
        if not isinstance(operation, dict):
            raise Rejected("an operation is no object")
        name, path = operation.get("op"), operation.get("path")
        if not isinstance(path, str):
            raise Rejected("no path")
        if name in ("move", "copy"):
            source = operation.get("from")
            if not isinstance(source, str):
                raise Rejected("no from")
            value = _value(made, source)
            if name == "move":
                _remove(made, source)
            else:
                value = copy.deepcopy(value)
                copied += len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
                if copied > _COPIED_BYTES_MAX:
                    raise Rejected("too much is copied")
            _add(made, path, value)
        elif name == "remove":
            _remove(made, path)
        elif name in ("add", "replace", "test"):
            value = copy.deepcopy(operation.get("value"))
            if name == "test":
                _test(made, path, value, "value" in operation)
            elif name == "add":
                _add(made, path, value)
            elif path:
                _replace(made, path, value)
            else:
                made = value
        else:
            raise Rejected(f"unknown operation {name!r}")
    return made


def _index(text: str, length: int) -> int:
    """Return the index of an existing element.

    Raises: Rejected.
    """
    if not _NUMBER.fullmatch(text) or len(text) > _DIGITS_MAX:
        raise Rejected("no index")
    index = int(text)
    index += length if index < 0 else 0
    if not 0 <= index < length:
        raise Rejected("an index outside of the list")
    return index


def _child(parent: Any, step: str) -> Any:
    """Return a member or element; None for a missing member, as for one that is null."""
    return parent.get(step) if isinstance(parent, dict) else parent[_index(step, len(parent))]


def _parent(document: Any, path: str) -> tuple[Any, str]:
    """Return the container of the last step, and that step. Text before the first slash is ignored.

    Raises: Rejected for the whole document, which has no parent.
    """
    steps = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    if not steps:
        raise Rejected("the whole document")
    for step in steps[:-1]:
        document = _child(document, step)
        if not isinstance(document, dict | list):
            raise Rejected("no parent")
    return document, steps[-1]


def _value(document: Any, path: str) -> Any:
    parent, last = _parent(document, path)
    return _child(parent, last)


def _add(document: Any, path: str, value: Any) -> None:
    parent, last = _parent(document, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        # An insertion may append: one index more than there are elements.
        parent.insert(_index(last, len(parent) + 1), value)


def _replace(document: Any, path: str, value: Any) -> None:
    parent, last = _parent(document, path)
    parent[last if isinstance(parent, dict) else _index(last, len(parent))] = value


def _remove(document: Any, path: str) -> None:
    parent, last = _parent(document, path)
    if isinstance(parent, dict):
        if last not in parent:
            raise Rejected("nothing to remove")
        del parent[last]
    else:
        del parent[_index(last, len(parent))]


def _test(document: Any, path: str, value: Any, given: bool) -> None:
    found = _value(document, path) if path else document
    if found is None:
        # A missing value is null.
        if value is not None:
            raise Rejected("the test fails")
    elif not given or not _equal(found, value):
        raise Rejected("the test fails")


def _equal(left: Any, right: Any) -> bool:
    """Report whether two values are equal as JSON texts: true is not 1, nor is 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)
