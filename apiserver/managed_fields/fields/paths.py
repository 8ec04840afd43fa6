"""Elements of field paths, as their strings in FieldsV1.

`f:NAME` is a field, `k:{"name":"c"}` the element of a list with these keys, `v:"x"` an element of a set and
`i:3` an index. Strings are canonical (keys sorted, no blanks, shortest numbers), so that equal elements are
equal strings.

Source: structured-merge-diff v6, fieldpath/serialize-pe.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from nominee.machinery.api.names import go_quote

SELF = "."
Path = tuple[str, ...]


class BadElement(ValueError):
    """A string that is not a path element."""


def field(name: str) -> str:
    return f"f:{name}"


def key(fields: Mapping[str, Any]) -> str:
    return f"k:{_dump({name: fields[name] for name in sorted(fields)})}"


def value(item: Any) -> str:
    return f"v:{_dump(item)}"


def _dump(item: Any) -> str:
    return escape_html(json.dumps(_plain(item), separators=(",", ":"), ensure_ascii=False, sort_keys=True))


def escape_html(text: str) -> str:
    """Return JSON as Go's encoder writes it, with HTML escaped."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _plain(item: Any) -> Any:
    if isinstance(item, float):
        return int(item) if item.is_integer() else float(item)
    if isinstance(item, dict):
        return {name: _plain(inner) for name, inner in item.items()}
    return [_plain(inner) for inner in item] if isinstance(item, list) else item


@lru_cache(maxsize=4096)
def parse(text: str) -> str | None:
    """Return the canonical string of an element, or None for an unknown kind of element.

    Raises: BadElement.
    """
    kind, rest = text[:2], text[2:]
    if len(text) < 2:
        raise BadElement("key must be 2 characters long:")
    if kind[1] != ":":
        raise BadElement(f"missing colon: {text}")
    if kind == "f:":
        return text
    try:
        if kind == "v:":
            return value(json.loads(rest))
        if kind == "k:":
            fields = json.loads(rest)
            if not isinstance(fields, dict):
                raise BadElement(f"no keys: {text}")
            return key(fields)
        if kind == "i:":
            return f"i:{int(rest)}"
    except (ValueError, RecursionError) as error:
        raise BadElement(str(error)) from None
    return None


@lru_cache(maxsize=4096)
def format_element(element: str) -> str:
    """Return an element as messages print it: `.spec`, `[name="c"]`, `[="x"]`, `[3]`."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        fields = json.loads(rest)
        return f"[{','.join(f'{name}={_shown_value(fields[name])}' for name in sorted(fields))}]"
    return f"[={_shown_value(json.loads(rest))}]" if kind == "v:" else f"[{rest}]"


def shown_path(path: Iterable[str]) -> str:
    return "".join(map(format_element, path))


def _shown_value(item: Any) -> str:
    return go_quote(item) if isinstance(item, str) else _dump(item)


@lru_cache(maxsize=4096)
def order(element: str) -> tuple[Any, ...]:
    """Return the sort key of an element: fields, keys, values, indexes."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return (0, rest)
    if kind == "k:":
        fields = json.loads(rest)
        return (1, tuple((name, _value_order(fields[name])) for name in sorted(fields)))
    return (2, _value_order(json.loads(rest))) if kind == "v:" else (3, int(rest))


def _value_order(item: Any) -> tuple[int, Any]:
    """Return the sort key of a value: numbers, strings, booleans, others."""
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, int | float):
        return (0, item)
    return (1, item) if isinstance(item, str) else (3, _dump(item))
