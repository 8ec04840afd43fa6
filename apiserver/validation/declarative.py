"""Rules that upstream generates from the tags of its types (1.36, apimachinery/pkg/api/validate).

They word some things differently from the rules written by hand: lengths in bytes, unions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from nominee.apiserver.validation import field
from nominee.machinery.api import names
from nominee.machinery.api.errors import Cause
from nominee.machinery.wire import codec

M = TypeVar("M", bound=Message)


def not_zero(path: str, value: object) -> list[Cause]:
    """Refuse the zero value of a type."""
    return [] if value else [field.required(path)]


def short_name(path: str, name: str) -> list[Cause]:
    """Check a DNS label (format=k8s-short-name)."""
    return field.problems(path, name, names.dns_label_problems(name, unit="bytes"))


def long_name(path: str, name: str) -> list[Cause]:
    """Check a DNS subdomain (format=k8s-long-name)."""
    return field.problems(path, name, names.dns_subdomain_problems(name, unit="bytes"))


def label_key(path: str, key: str) -> list[Cause]:
    """Check a label key (format=k8s-label-key)."""
    return field.check(path, key, names.qualified_name_problems)


def union(path: str, message: Message, members: Sequence[str]) -> list[Cause]:
    """Refuse a union of which not exactly one member is set."""
    given = [name for name in members if message.HasField(name)]
    listed = ", ".join(f"`{name}`" for name in members)
    if not given:
        return [field.invalid(path, "", f"must specify one of: {listed}")]
    if len(given) > 1:
        value = f"{{{', '.join(given)}}}"
        return [field.invalid(path, value, f"must specify exactly one of: {listed}")]
    return []


def items(
    path: str,
    values: Sequence[M],
    count_max: int,
    check: Callable[[str, M], Iterable[Cause]],
    *,
    key: Callable[[M], str] | None = None,
) -> Iterator[Cause]:
    """Check a list of at most `count_max` items, whose keys differ, and each item with `check`."""
    if len(values) > count_max:
        yield field.too_many(path, len(values), count_max)
        return
    seen: set[str] = set()
    for index, value in enumerate(values):
        if key is None:
            break
        name = key(value)
        if name in seen:
            yield field.duplicate(f"{path}[{index}]", codec.to_json(value))
        seen.add(name)
    for index, value in enumerate(values):
        yield from check(f"{path}[{index}]", value)


def string_set(
    path: str,
    values: Sequence[str],
    count_max: int,
    check: Callable[[str, str], Iterable[Cause]],
    *,
    before: Sequence[str] = (),
) -> list[Cause]:
    """Check a list of at most `count_max` different texts, and each text with `check`.

    What is stored already is not checked again: a text of `before`, or the whole list if it is the same.
    """
    if before and list(values) == list(before):
        return []
    if len(values) > count_max:
        return [field.too_many(path, len(values), count_max)]
    errors = [
        field.duplicate(f"{path}[{index}]", text)
        for index, text in enumerate(values)
        if text in values[:index]
    ]
    for index, text in enumerate(values):
        if text not in before:
            errors += check(f"{path}[{index}]", text)
    return errors


def immutable(path: str, new: object) -> Cause:
    """Return the error about a field that has changed."""
    return field.invalid(path, new, field.IMMUTABLE)
