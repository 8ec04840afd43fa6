"""Which cases are worth recording: those that do what few runs do. No I/O.

These are branches of the program that they take, and subjects that they disturb.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import Final

RUNS: Final = 3
"""Each is worth something until so many runs do it: what a mistake there changes is not seen in all."""
CASES_MAX: Final = 3
"""Of one scenario."""
GAIN_MIN: Final = 3


class Selection:
    """What the runs so far do, of all scenarios whose outcomes are recorded together."""

    def __init__(self) -> None:
        self._runs = Counter[Hashable]()

    def choose(
        self, undisturbed: Collection[Hashable], found: Mapping[str, Collection[Hashable]]
    ) -> list[str]:
        """Return cases of a scenario, by what each does, those first that do most rare things."""
        self._runs.update(undisturbed)
        left = {case: frozenset(done) for case, done in found.items()}
        chosen: list[str] = []
        while left and len(chosen) < CASES_MAX:
            best = max(left, key=lambda case: self._gain(left[case]))
            if self._gain(left[best]) < GAIN_MIN:
                break
            self._runs.update(left.pop(best))
            chosen.append(best)
        return chosen

    def _gain(self, done: Collection[Hashable]) -> int:
        return sum(self._runs[each] < RUNS for each in done)
