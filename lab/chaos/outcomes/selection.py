"""Which cases are worth recording: those that take branches of the program that few runs take. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

RUNS: Final = 3
"""A branch is worth something until so many runs take it: what a mistake there changes is not seen in all."""
CASES_MAX: Final = 3
"""Of one scenario."""
GAIN_MIN: Final = 3


class Selection:
    """The branches that the runs so far take, of all scenarios whose outcomes are recorded together."""

    def __init__(self) -> None:
        self._runs = Counter[int]()

    def choose(self, undisturbed: Collection[int], found: Mapping[str, Collection[int]]) -> list[str]:
        """Return cases of a scenario, by the branches of each, those first that take most rare ones."""
        self._runs.update(undisturbed)
        left = {case: frozenset(branches) for case, branches in found.items()}
        chosen: list[str] = []
        while left and len(chosen) < CASES_MAX:
            best = max(left, key=lambda case: self._gain(left[case]))
            if self._gain(left[best]) < GAIN_MIN:
                break
            self._runs.update(left.pop(best))
            chosen.append(best)
        return chosen

    def _gain(self, branches: Collection[int]) -> int:
        return sum(self._runs[each] < RUNS for each in branches)
