"""Which cases are worth recording: those of rare features. No I/O.

Features are branches of the program that a run takes, and subjects that it disturbs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import Final

RUNS: Final = 3
"""A feature is worth something until so many runs have it: not all of them show a mistake there."""
CASES_MAX: Final = 6
"""Of one scenario."""
GAIN_MIN: Final = 3


class Selection:
    """The features of the runs so far, of all scenarios whose outcomes are recorded together."""

    def __init__(self) -> None:
        self._runs = Counter[Hashable]()

    def choose(
        self, undisturbed: Collection[Hashable], found: Mapping[str, Collection[Hashable]]
    ) -> list[str]:
        """Return cases of a scenario, by the features of each, those first that have most rare ones."""
        self._runs.update(undisturbed)
        left = {case: frozenset(features) for case, features in found.items()}
        chosen: list[str] = []
        while left and len(chosen) < CASES_MAX:
            best = max(left, key=lambda case: self._gain(left[case]))
            if self._gain(left[best]) < GAIN_MIN:
                break
            self._runs.update(left.pop(best))
            chosen.append(best)
        return chosen

    def _gain(self, features: Collection[Hashable]) -> int:
        return sum(self._runs[each] < RUNS for each in features)
