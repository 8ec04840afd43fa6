"""JSON paths as kubectl writes them: `.status.phase`, `{.spec.containers[*].name}`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from jsonpath import JSONPath

FieldPath = tuple[str | int, ...]
"""Keys and indexes from the root of a document to a value."""
_ESCAPED = re.compile(r"\.((?:[^.\[\]\\\"']|\\.)*\\\.(?:[^.\[\]\\\"']|\\.)*)")
_DASHED = re.compile(r"\.([A-Za-z_][\w-]*[-/][\w/-]*)(?=$|[.\[])")


class PathError(ValueError):
    """A text that is no JSON path."""


@cache
def compiled(path: str) -> JSONPath:
    """Return a compiled path.

    Raises:
        PathError: the text is not a path.
    """
    import jsonpath

    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = _ESCAPED.sub(lambda found: f'["{_unescaped(found[1])}"]', text)
    text = _DASHED.sub(lambda found: f'["{found[1]}"]', text)
    if not text.startswith(("$", ".", "[")):
        raise PathError(f"{path!r}: a JSON path begins with a dot, as .status.phase")
    try:
        found = jsonpath.compile(text if text.startswith("$") else f"${text}")
    except jsonpath.JSONPathError as error:
        raise PathError(f"{path!r} is not a JSON path: {str(error).splitlines()[0]}") from None
    if not isinstance(found, jsonpath.JSONPath):
        raise PathError(f"{path!r}: write one path")
    return found


def _unescaped(text: str) -> str:
    return text.replace("\\.", ".")


def find(path: str, document: Json) -> list[Json]:
    """Return the values at a path, in the document's order."""
    return compiled(path).findall(document)
