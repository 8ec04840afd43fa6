"""Which case is next: an exploration as data. No I/O, no clock, no randomness of its own.

Single perturbations come first: each action at the first hit of each failpoint, then at a later one, then the
changed watches, then moves to an API server that lags; then pairs of single perturbations that held, or had
accepted findings alone. A pair with one that is known to break is left out: it would not be a smaller case.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import zip_longest

from nominee.lab.chaos.cases.case import (
    Action,
    AtFailpoint,
    Case,
    Move,
    OfWatch,
    Perturbation,
    ToServer,
    View,
)
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict

PAIRS_MAX = 10_000
ETCD = "etcd"
"""The kind that stands for all keys of etcd, which the API server watches; it needs every revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The cases of an exploration: the allowed perturbations.

    `only`: patterns as of a shell, of which an identifier of a single perturbation must match one. `hits`: at
    how many hits of a failpoint an action is tried, the first and others drawn from the seed. `watched` names
    kinds by process; `steps` are the steps at which a watch may be changed. `lagging` is the API server that
    the processes in `served` may move to, "" if there is only one.
    """

    actions: Sequence[Action] = tuple(Action)
    views: Sequence[View] = tuple(View)
    moves: Sequence[Move] = tuple(Move)
    pairs: bool = False
    only: Sequence[str] = ()
    hits: int = 2
    seed: int = 0
    watched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    steps: Sequence[int] = ()
    lagging: str = ""
    served: Sequence[str] = ()

    def includes(self, perturbation: Perturbation) -> bool:
        """Return whether a pattern covers a perturbation."""
        return not self.only or any(fnmatchcase(str(perturbation), pattern) for pattern in self.only)


def singles(hits: Mapping[str, Mapping[str, int]], scope: Scope) -> list[Case]:
    """Return the cases of one perturbation.

    `hits`: by process, how often the undisturbed run passed each failpoint.
    """
    rng = random.Random(scope.seed)
    rows = [
        [(process, name, count) for name, count in sorted(points.items()) if count]
        for process, points in hits.items()
    ]
    # In turns, so that a short exploration comes to every process.
    passed = [each for row in zip_longest(*rows) for each in row if each is not None]
    later = [
        (process, name, hit)
        for process, name, count in passed
        for hit in sorted(rng.sample(range(2, count + 1), min(scope.hits, count) - 1))
    ]
    found: list[Perturbation] = [
        AtFailpoint(process, name, action) for action in scope.actions for process, name, _ in passed
    ]
    found += [
        AtFailpoint(process, name, action, hit) for action in scope.actions for process, name, hit in later
    ]
    found += [
        OfWatch(process, kind, view, step)
        for view in scope.views
        for process, kinds in scope.watched.items()
        for kind in kinds
        for step in scope.steps
        if not (view is View.MERGE and kind == ETCD)
    ]
    if scope.lagging:
        found += [
            ToServer(process, scope.lagging, move, step)
            for move in scope.moves
            for process in scope.served
            for step in scope.steps
        ]
    return [Case.of(each) for each in found if scope.includes(each)]


def pairs(held: Sequence[Case], scope: Scope) -> Iterator[Case]:
    """Yield pairs of single perturbations in an order drawn from the seed, up to PAIRS_MAX.

    Two actions at the same hit of a failpoint, or two changes of one watch, are no pair.
    """
    alone = [each.perturbations[0] for each in held if len(each.perturbations) == 1]
    indices = [
        (first, second)
        for first in range(len(alone))
        for second in range(first + 1, len(alone))
        if _place(alone[first]) != _place(alone[second])
    ]
    random.Random(scope.seed).shuffle(indices)
    for first, second in indices[:PAIRS_MAX]:
        yield Case.of(alone[first], alone[second])


def _place(perturbation: Perturbation) -> tuple[str, str, int]:
    match perturbation:
        case AtFailpoint(component, name, _, hit):
            return component, name, hit
        case OfWatch(component, kind):
            return component, kind, 0
        case ToServer(component, server):
            return component, server, 0


class Exploration:
    """The cases that are still to be run, and the results so far.

    Call `next_case`, run it, `record` its result; None: there is no other case.
    """

    def __init__(self, hits: Mapping[str, Mapping[str, int]], scope: Scope) -> None:
        self._scope = scope
        self._singles = singles(hits, scope)
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
    return sum(each.hit if isinstance(each, AtFailpoint) else each.step for each in case.perturbations)
