"""Run checkers over a history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Checker, Violation
from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.reads import Read
from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.revision import Revision
from nominee.lab.reports.records import Record
from nominee.machinery.api.kinds import AnyKind

VIOLATIONS_MAX = 100
"""Violations of one invariant that are kept; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Record):
    """The result of one invariant. `unchecked` is why it was not checked, or ""."""

    invariant: str
    checked: int
    unchecked: str
    exceptions: Mapping[str, int]
    counts: Mapping[str, int]
    violations: tuple[Violation, ...]
    more_violations: int = 0


@dataclass(slots=True)
class _Running:
    checker: Checker
    violations: list[Violation] = field(default_factory=list)
    more: int = 0

    def add(self, violation: Violation) -> None:
        """Keep a violation, or count it."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(violation)
        else:
            self.more += 1


class Check:
    """Checkers that observe a history while it is written, or afterwards.

    `names` are the invariants to check, None for all.
    """

    def __init__(self, settings: ComponentSettings, names: Collection[str] | None = None) -> None:
        self._running = [
            _Running(checker(settings))
            for checker in CHECKERS
            if names is None or checker.about.name in names
        ]
        self._served_time = ServedTime()
        for each in self._running:
            each.checker.served_time = self._served_time
        self._of_answers = [each for each in self._running if each.checker.takes_answers]
        self._by_kind: dict[AnyKind | None, list[_Running]] = {}

    def _interested(self, kind: AnyKind | None) -> list[_Running]:
        interested = self._by_kind.get(kind)
        if interested is None:
            interested = self._by_kind[kind] = [each for each in self._running if each.checker.observes(kind)]
        return interested

    def observe(self, revision: Revision) -> list[Violation]:
        """Return the violations that the next revision shows."""
        found = []
        self._served_time.observe(revision)
        for running in self._interested(revision.kind):
            for violation in running.checker.observe(revision):
                running.add(violation)
                found.append(violation)
        return found

    def observe_answer(self, answer: Answer) -> list[Violation]:
        """Return the violations that an answer of an API server shows; `observe` has come to its `end`."""
        return self._violations(lambda checker: checker.observe_answer(answer))

    def observe_read(self, read: Read) -> list[Violation]:
        """Return the violations that a list or an event of a watch shows."""
        return self._violations(lambda checker: checker.observe_read(read))

    def observe_cloud(self, call: CloudCall) -> list[Violation]:
        """Return the violations that a call of the autoscaler to the cloud shows."""
        return self._violations(lambda checker: checker.observe_cloud(call))

    def _violations(self, observe: Callable[[Checker], Iterator[Violation]]) -> list[Violation]:
        found = []
        for running in self._of_answers:
            for violation in observe(running.checker):
                running.add(violation)
                found.append(violation)
        return found

    def finish(self, evidence: Evidence) -> list[Result]:
        """Return the results if the history ends here; it may go on, and be finished again."""
        return [_finished(running, evidence) for running in self._running]


def _finished(running: _Running, evidence: Evidence) -> Result:
    """Return the result of a checker; the counts of its end are taken back."""
    checker, end = running.checker, _Running(running.checker, list(running.violations), running.more)
    counters = checker.checked, checker.excepted.copy(), checker.counted.copy()
    unchecked = checker.unchecked(evidence)
    if not unchecked:
        for violation in checker.finish(evidence):
            end.add(violation)
    result = Result(
        invariant=checker.about.name,
        checked=checker.checked,
        unchecked=unchecked,
        exceptions=dict(checker.excepted),
        counts=dict(checker.counted),
        violations=tuple(end.violations),
        more_violations=end.more,
    )
    checker.checked, checker.excepted, checker.counted = counters
    return result


def check(
    history: Iterable[Revision],
    settings: ComponentSettings,
    evidence: Evidence,
    names: Collection[str] | None = None,
) -> list[Result]:
    """Return the results of all invariants, or those with these names, for a whole history."""
    running = Check(settings, names)
    for revision in history:
        running.observe(revision)
    return running.finish(evidence)


def violations(results: Iterable[Result]) -> list[Violation]:
    """Return the violations of all results."""
    return [violation for result in results for violation in result.violations]
