"""Lists of indexes of an Indexed Job, as "1,3-5" (kube-apiserver 1.36, validateIndexesFormat)."""

from __future__ import annotations

from nominee.machinery.api.names import go_quote
from nominee.machinery.api.selectors import parse_int64


class IndexesError(ValueError):
    """A text that is not a list of indexes; its message is upstream's."""


def count(text: str, completions: int) -> int:
    """Return how many indexes the list has.

    Raises IndexesError: a list that does not rise, or has an index that is not below `completions`.
    """
    if not text:
        return 0
    last: int | None = None
    total = 0
    for part in text.split(","):
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that both lists have, or None; intervals that cannot be read are skipped."""
    ours, theirs = _readable(completed, completions), _readable(failed, completions)
    place = other = 0
    while place < len(ours) and other < len(theirs):
        (first, end), (start, last) = ours[place], theirs[other]
        if first <= last and start <= end:
            return max(first, start)
        if first <= start:
            place += 1
        else:
            other += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except IndexesError:
            continue
    return found


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {go_quote(text)} violates the requirement that an index interval can have at most"
            " two parts separated by '-'"
        )
    first = last = _index(limits[0], completions)
    if len(limits) == 2:
        last = _index(limits[1], completions)
        if first >= last:
            raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _index(text: str, completions: int) -> int:
    number = parse_int64(text)
    if number is None:
        raise IndexesError(f"cannot convert string to integer for index: {go_quote(text)}")
    if number >= completions:
        raise IndexesError(f"too large index: {go_quote(text)}")
    return number
