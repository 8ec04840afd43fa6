"""Which case is next: an exploration as data. No I/O, no clock, no randomness of its own.

Single perturbations come first, then pairs of single perturbations that held, or had accepted findings
alone. A pair with one that is known to break is left out: it would not be a smaller case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope, pairs, singles
from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.perturbations import number_of
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict


class Exploration:
    """The cases that are still to be run, and the results so far.

    Call `next_case`, run it, `record` its result; None: there is no other case.
    """

    def __init__(self, activity: Activity, scope: Scope) -> None:
        self._scope = scope
        self._singles = singles(activity, scope)
        self._next_single = 0
        self._pairs: Iterator[Case] | None = None
        self.results: list[CaseResult] = []

    @property
    def single_count(self) -> int:
        """Return the number of cases of one perturbation."""
        return len(self._singles)

    @property
    def left(self) -> int:
        """Return the number of single cases that have not been run."""
        return len(self._singles) - self._next_single

    def next_case(self) -> Case | None:
        """Return the next case."""
        if self._next_single < len(self._singles):
            self._next_single += 1
            return self._singles[self._next_single - 1]
        if not self._scope.pairs:
            return None
        if self._pairs is None:
            quiet = (Verdict.HELD, Verdict.ACCEPTED)
            held = [result.case for result in self.results if result.verdict in quiet]
            self._pairs = pairs(held, self._scope)
        return next(self._pairs, None)

    def record(self, result: CaseResult) -> None:
        """Note the result of a case."""
        self.results.append(result)

    def broken(self) -> list[CaseResult]:
        """Return the cases that do not hold, the smallest first."""
        return smallest_first(result for result in self.results if result.verdict is Verdict.BROKEN)


def smallest_first(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Return results by the number of perturbations, then by the hit."""
    return sorted(results, key=lambda result: (len(result.case.perturbations), _depth(result.case)))


def _depth(case: Case) -> int:
    return sum(number_of(each) for each in case.perturbations)
