"""The order of single cases: kinds of disturbance take turns with promising cases. No I/O.

Two of three cases are of the next kinds of disturbance, so that a short exploration tries all kinds, and of
the subject that was tried least, in all scenarios that share a `Coverage`. The third is chosen by what was
new lately: a neighbour of a case that showed something new, or a case of the kind and process that did. The
same cases and results give the same order.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import Perturbation, Subject, kind_of, subject_of

Group = tuple[str, str]
"""A kind of disturbance, and a process."""
PROMISE_PERIOD = 3
"""One of so many cases is chosen by what was new."""
RECENT_CASES = 4
"""What a group promises is the mean of so many of its last cases."""
TURNS = {
    "lose-response": 3,
    **dict.fromkeys(("crash", "restart", "lose-request", "error", "recreate", "touch"), 2),
}
"""How often kinds of disturbance come in a turn, if not once: after these a process takes over or retries."""
Neighbours = Callable[[Perturbation], Iterable[Case]]


class Coverage:
    """The number of disturbances of each subject, in all scenarios of a command."""

    def __init__(self) -> None:
        self._counts = Counter[Subject]()

    def note(self, case: Case) -> None:
        """Count the subjects of a case."""
        self._counts.update(map(subject_of, case.perturbations))

    def count(self, case: Case) -> int:
        """Return how often the subject of a case of one perturbation was disturbed."""
        (each,) = case.perturbations
        return self._counts[subject_of(each)]


class Order:
    """The single cases that are to be run; `record` says how many new features a case showed."""

    def __init__(self, cases: Sequence[Case], seed: int, neighbours: Neighbours, coverage: Coverage) -> None:
        self._waiting: dict[Group, list[Case]] = {}
        for case in cases:
            self._waiting.setdefault(_group(case), []).append(case)
        kinds = list(dict.fromkeys(kind for kind, _ in self._waiting))
        rng = random.Random(seed)
        rng.shuffle(kinds)
        self._kinds = deque(
            kind for turn in range(max(TURNS.values())) for kind in kinds if turn < TURNS.get(kind, 1)
        )
        self._processes: dict[str, deque[str]] = {}
        for kind in dict.fromkeys(kinds):
            processes = [process for other, process in self._waiting if other == kind]
            # Each kind begins with another process.
            rng.shuffle(processes)
            self._processes[kind] = deque(processes)
        self._neighbours = neighbours
        self._ran, self._handed_out = coverage, Coverage()
        self._listed = frozenset(cases)
        self._known: set[Case] = set()
        """The cases that were run, or wait among the neighbours."""
        self._bred: list[tuple[int, int, Case]] = []
        self._recent: dict[Group, deque[int]] = {}
        self._turn = 0
        self.single_left = len(cases)
        """The number of listed cases that have not been run."""

    def next_case(self) -> Case | None:
        """Return the next case; None at the end."""
        self._turn += 1
        case = self._most_promising() if self._turn % PROMISE_PERIOD == 0 else None
        case = case or self._in_turn() or self._most_promising()
        if case is not None:
            self._known.add(case)
            self._handed_out.note(case)
            self.single_left -= case in self._listed
        return case

    def record(self, case: Case, novelty: int) -> None:
        """Note the number of new features of a case, and let its neighbours wait if there are some."""
        if len(case.perturbations) != 1:
            return
        self._recent.setdefault(_group(case), deque(maxlen=RECENT_CASES)).append(novelty)
        if not novelty:
            return
        for each in self._neighbours(case.perturbations[0]):
            if each not in self._known:
                self._known.add(each)
                heappush(self._bred, (-novelty, len(self._known), each))

    def _in_turn(self) -> Case | None:
        """Return a case of the next kind of disturbance, of a subject that was tried least.

        Of equal ones that of the process whose turn it is.
        """
        for _ in range(len(self._kinds)):
            kind = self._kinds[0]
            self._kinds.rotate(-1)
            processes = self._processes[kind]
            found = [(process, case) for process in processes if (case := self._rarest((kind, process)))]
            if found:
                process, case = min(found, key=lambda each: self._tried(each[1]))
                processes.remove(process)
                processes.append(process)
                self._waiting[kind, process].remove(case)
                return case
        return None

    def _tried(self, case: Case) -> int:
        """Return how often the subject of a case was disturbed, or is to be, in this scenario."""
        return self._ran.count(case) + self._handed_out.count(case)

    def _rarest(self, group: Group) -> Case | None:
        """Return the first of the waiting cases whose subject was tried least."""
        waiting = [case for case in self._waiting[group] if case not in self._known]
        self._waiting[group] = waiting
        return min(waiting, key=self._tried, default=None)

    def _most_promising(self) -> Case | None:
        """Return a neighbour of a case with new features, or a case of the group that had most lately."""
        groups = [group for group, waiting in self._waiting.items() if waiting and group in self._recent]
        best = max(groups, key=self._promise, default=None)
        if self._bred and (best is None or -self._bred[0][0] >= self._promise(best)):
            return heappop(self._bred)[2]
        if best is None or not self._promise(best):
            return None
        case = self._rarest(best)
        if case is not None:
            self._waiting[best].remove(case)
        return case

    def _promise(self, group: Group) -> float:
        recent = self._recent[group]
        return sum(recent) / len(recent)


def _group(case: Case) -> Group:
    (each,) = case.perturbations
    return kind_of(each), each.component
