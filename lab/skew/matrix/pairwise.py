"""A small set of cells in which all pairs of values occur.

The well-known library for it, allpairspy, had its last release in July 2023 and cannot promise every pair
when some combinations are impossible (a gate that a version does not know), which is usual here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

STRENGTH = 2


def covering(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return indexes of rows, in order, in which every pair of values occurs that occurs in all rows.

    Greedy: the row with the most new pairs, and of several the first. Every row has one value for each
    factor; with one factor, every value occurs.
    """
    pairs = [frozenset(_pairs(row)) for row in rows]
    missing = set().union(*pairs)
    chosen: list[int] = []
    while missing:
        best = max(range(len(rows)), key=lambda index: (len(pairs[index] & missing), -index))
        missing -= pairs[best]
        chosen.append(best)
    return sorted(chosen) if chosen else list(range(min(1, len(rows))))


def _pairs(row: Sequence[str]) -> list[tuple[tuple[int, str], ...]]:
    placed = list(enumerate(row))
    return list(combinations(placed, min(STRENGTH, len(placed)))) if placed else []
