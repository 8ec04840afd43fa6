"""Which case is next: an exploration as data. No I/O, no clock, no randomness of its own.

Single perturbations come first (`order.py`), then pairs of single perturbations that held, or had accepted
findings alone. A pair with one that is known to break is left out: it would not be a smaller case.

Perturbations of several processes may share a run (`Scope.together`), so that more are tried in the same
time. What breaks is run again with less (`Explorer`); parts of which a run says nothing are run alone.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope, neighbours, pairs, singles
from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.order import Coverage, Order
from nominee.lab.chaos.cases.perturbations import FromStep, Perturbation, number_of
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict

DRAWN_SIZES = (1, 2, 4, 6)
"""How many perturbations a drawn case has: one of these numbers."""
OF_PROCESSES_MAX = 4
"""Of more perturbations in a run, those of one process are at different places."""
ALONE_FIRST, ALONE_PERIOD = 6, 3
"""The first perturbations, and then each third run, have no other one with them, if not many share a run."""

_KEPT_MAX = 8
"""So many cases are kept for the next runs of a storm, at most, when they cannot share this one."""
_INCOMPLETE = frozenset({Verdict.UNREACHED, Verdict.ACCEPTED, Verdict.INCONCLUSIVE})
"""Of several perturbations one may have kept the others from showing something."""


class Exploration:
    """The cases that are still to be run, and the results so far.

    Call `next_case`, run it, `record` its result with the features of its run; None: there is no other case.
    `features` are those of the undisturbed run; `coverage` is that of other scenarios, too.
    """

    def __init__(
        self,
        activity: Activity,
        scope: Scope,
        features: Collection[str] = (),
        coverage: Coverage | None = None,
    ) -> None:
        self._scope = scope
        cases = singles(activity, scope)
        self._listed = frozenset(cases)
        self.single_count = len(cases)
        """The number of cases of one perturbation."""
        near = partial(neighbours, activity=activity, scope=scope)
        self._coverage = coverage or Coverage()
        self._order = Order(cases, scope.seed, near, self._coverage)
        self._pairs: Iterator[Case] | None = None
        self._turn = 0
        self._passed_over = deque[Case]()
        """Cases that could not share a run with the one before."""
        self._again = deque[Case]()
        """Parts of cases that are to be run alone."""
        self._undisturbed, self._seen = frozenset(features), set(features)
        self._distances: dict[Case, int] = {}
        self.results: list[CaseResult] = []

    @property
    def left(self) -> int:
        """Return the number of single cases that have not been run."""
        return self._order.single_left

    def next_case(self) -> Case | None:
        """Return the next case."""
        if self._again:
            return self._again.popleft()
        case = self._next_single()
        if case is not None:
            return self._with_others(case)
        if not self._scope.pairs:
            return None
        if self._pairs is None:
            quiet = (Verdict.HELD, Verdict.ACCEPTED)
            held = [result.case for result in self.results if result.verdict in quiet]
            self._pairs = pairs(held, self._scope, lambda each: self._distances.get(each, 0))
        return next(self._pairs, None)

    def _next_single(self) -> Case | None:
        return self._passed_over.popleft() if self._passed_over else self._order.next_case()

    def _with_others(self, case: Case) -> Case:
        """Return a case with the next ones of other processes, as many as may share a run."""
        self._turn += 1
        parts = list(case.perturbations)
        is_alone = self._turn <= ALONE_FIRST or self._turn % ALONE_PERIOD == 0
        if is_alone and self._scope.together <= OF_PROCESSES_MAX:
            return case
        others_max = self._scope.together - len(parts)
        kept: list[Case] = []
        while others_max and len(kept) <= _KEPT_MAX:
            other = self._next_single()
            if other is None:
                break
            other = self._at_one_step(other, parts)
            if self._may_share(other, parts):
                parts += other.perturbations
                others_max -= 1
            else:
                kept.append(other)
                if self._scope.together <= OF_PROCESSES_MAX:
                    break
        self._passed_over.extend(kept)
        return Case.of(*parts)

    def _at_one_step(self, case: Case, parts: Sequence[Perturbation]) -> Case:
        """Return a case with the step of the first part that has one, if it is possible and many share a run.

        What happens at the same time meets.
        """
        steps = [part.step for part in parts if isinstance(part, FromStep)]
        if self._scope.together <= OF_PROCESSES_MAX or not steps:
            return case
        moved = Case.of(
            *(
                replace(part, step=steps[0]) if isinstance(part, FromStep) else part
                for part in case.perturbations
            )
        )
        return moved if moved in self._listed else case

    def _may_share(self, case: Case, parts: Sequence[Perturbation]) -> bool:
        """Return whether a case may share a run with others; many are of several places of a process."""
        if self._scope.together > OF_PROCESSES_MAX:
            return not {each.place for each in case.perturbations} & {each.place for each in parts}
        return not {each.component for each in case.perturbations} & {each.component for each in parts}

    def random_cases(self, count: int) -> Iterator[Case]:
        """Yield cases of one to six perturbations, each of another place, as the order has them."""
        rng = random.Random(self._scope.seed)
        for _ in range(count):
            parts: dict[tuple[str, str, int], Perturbation] = {}
            for _ in range(rng.choice(DRAWN_SIZES)):
                case = self._order.next_case()
                for each in case.perturbations if case is not None else ():
                    parts.setdefault(each.place, each)
            if not parts:
                return
            yield Case.of(*parts.values())

    def record(self, result: CaseResult, features: Collection[str] = ()) -> CaseResult:
        """Note the result of a case; return it with the number of features that no run before it had."""
        found = frozenset(features)
        result = replace(result, novelty=len(found - self._seen))
        self._seen |= found
        if result.verdict.is_applied:
            self._coverage.note(result.case)
        self._distances[result.case] = len(found - self._undisturbed)
        parts = [Case.of(each) for each in result.case.perturbations]
        for part in parts:
            self._order.record(part, result.novelty)
        if len(parts) > 1 and self._scope.together > 1 and result.verdict in _INCOMPLETE:
            self._again.extend(parts)
        self.results.append(result)
        return result

    def broken(self) -> list[CaseResult]:
        """Return the cases that do not hold, the smallest first."""
        return smallest_first(result for result in self.results if result.verdict is Verdict.BROKEN)


def smallest_first(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Return results by the number of perturbations, then by the hit."""
    return sorted(results, key=lambda result: (len(result.case.perturbations), _depth(result.case)))


def _depth(case: Case) -> int:
    return sum(number_of(each) for each in case.perturbations)
