"""Field errors: one constructor for each of upstream's error types.

Source: k8s.io/apimachinery/pkg/util/validation/field 1.36. A path is text ("spec.containers[0].name"); the
empty path prints `[]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote

T = TypeVar("T")

ROOT = "[]"

OMIT = object()
"""As a value: leave it out of the message."""


_HTML = {each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def shown(value: object) -> str:
    """Return a value as error messages show it: texts quoted, numbers plain, structures as JSON."""
    if value is OMIT:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, Mapping):
        value = dict(value)
    return for_html(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def for_html(text: str) -> str:
    """Return JSON as Go writes it by default: it may be put into HTML."""
    for character, escaped in _HTML.items():
        if character in text:
            text = text.replace(character, escaped)
    return text


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def invalid(path: str, value: object, detail: str) -> Cause:
    text = "Invalid value" if value is OMIT else f"Invalid value: {shown(value)}"
    return Cause("FieldValueInvalid", _with_detail(text, detail), path or ROOT)


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _with_detail("Required value", detail), path or ROOT)


def forbidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", _with_detail("Forbidden", detail), path or ROOT)


def not_supported(path: str, value: object, supported: Iterable[str]) -> Cause:
    """`supported` in the order to print."""
    listed = ", ".join(shown(choice) for choice in supported)
    text = f"Unsupported value: {shown(value)}"
    return Cause("FieldValueNotSupported", _with_detail(text, listed and f"supported values: {listed}"), path)


def duplicate(path: str, value: object) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def unique(path: str, value: T, seen: set[T]) -> list[Cause]:
    """Return the error about a value that is in `seen` already; add it there."""
    if value in seen:
        return [duplicate(path, value)]
    seen.add(value)
    return []


def not_found(path: str, value: object, detail: str = "") -> Cause:
    return Cause("FieldValueNotFound", _with_detail(f"Not found: {shown(value)}", detail), path)


def too_long(path: str, bytes_max: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {bytes_max} bytes", path or ROOT)


def too_many(path: str, count: int, count_max: int) -> Cause:
    items = "item" if count_max == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {count_max} {items}", path)


def problems(path: str, value: object, details: Iterable[str]) -> list[Cause]:
    """Return an error about an invalid value for each problem that a rule found (`validation.names`)."""
    return [invalid(path, value, detail) for detail in details]


def check(path: str, value: T, rule: Callable[[T], Iterable[str]]) -> list[Cause]:
    """Return an error about an invalid value for each problem that this rule finds."""
    return [invalid(path, value, detail) for detail in rule(value)]


def one_of(path: str, value: str, supported: Collection[str]) -> list[Cause]:
    """Return the error about a value that is not one of `supported`."""
    return [] if value in supported else [not_supported(path, value, supported)]


def choice(path: str, value: str, supported: Collection[str]) -> list[Cause]:
    """Return the error about a required value that is missing or not one of `supported`."""
    return one_of(path, value, supported) if value else [required(path)]


IMMUTABLE = "field is immutable"


def immutable(path: str, new: object, old: object) -> list[Cause]:
    """Return the error about a field that must not change, if it did."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def non_negative(path: str, value: int) -> list[Cause]:
    return [] if value >= 0 else [invalid(path, value, "must be greater than or equal to 0")]
