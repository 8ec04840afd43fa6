"""Lists with a greatest length and no value twice (upstream's validateSet and validateSlice)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause

T = TypeVar("T")


def each(
    path: str, values: Sequence[T], count_max: int, check: Callable[[str, T], Iterable[Cause]]
) -> list[Cause]:
    """Return the errors of every item, or one error for a list that is too long."""
    if 0 <= count_max < len(values):
        return [field.too_many(path, len(values), count_max)]
    errors: list[Cause] = []
    for index, value in enumerate(values):
        errors += check(f"{path}[{index}]", value)
    return errors


def distinct(
    path: str,
    values: Sequence[T],
    count_max: int,
    check: Callable[[str, T], Iterable[Cause]],
    key: Callable[[T], str] = str,
) -> list[Cause]:
    """Return the errors of `each`, and one for each key that comes twice."""
    errors = each(path, values, count_max, check)
    if 0 <= count_max < len(values):
        return errors
    seen: set[str] = set()
    for index, value in enumerate(values):
        name = key(value)
        errors += field.unique(f"{path}[{index}]", name, seen)
    return errors
