"""Completion indexes of a Job as text, as "1,3-5".

Source: kube-controller-manager 1.36, pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator


def ranges(text: str, completions: int) -> Iterator[range]:
    """Yield the ranges of a list as "1,3-5", below `completions`; unreadable parts are skipped."""
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield range(int(first), min(int(last or first), completions - 1) + 1)


def parse(text: str, completions: int) -> set[int]:
    """Return the indexes of a list as "1,3-5" below `completions`."""
    return {index for each in ranges(text, completions) for index in each}


def to_text(indexes: Collection[int]) -> str:
    """Return the list of indexes: of three or more in a row the first and the last, as "1,3-5"."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for place, index in enumerate(ordered):
        if place + 1 < len(ordered) and ordered[place + 1] == index + 1:
            continue
        first = ordered[start]
        parts.append(str(first) if first == index else f"{first}{'-' if index > first + 1 else ','}{index}")
        start = place + 1
    return ",".join(parts)
