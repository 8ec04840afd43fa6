"""A process that repeats a request in vain backs off."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.workloads.budgets import selecting
from nominee.lab.history.revision import Revision, subject_of
from nominee.machinery.api.kinds import JOB, POD, POD_DISRUPTION_BUDGET, REPLICA_SET
from nominee.machinery.api.objects import metadata_of

_LIMITS: Final = ((30, 1.0), (60, 10.0))
"""Requests, and seconds. A rate limiter that begins with 5 ms and doubles it makes 9, and 12; events about
the object, each of which is a reason for another attempt, come on top of that."""
_TOGETHER_SECONDS: Final = 0.004
"""Creations that begin within this time count once: a sync makes one for each replica that is missing."""
_KEPT: Final = max(count for count, _ in _LIMITS) + 1
_REASONS_MAX: Final = 100
_ENDS: Final = frozenset({Outcome.DONE, Outcome.ALREADY_EXISTS})
"""A creation that a process need not make is as good as one that it has made."""
_NAMED: Final = frozenset({Method.UPDATE, Method.PATCH})
USER: Final = "user"
"""The name of the client of a scenario's steps."""


class Retries(Checker):
    """Counts the answers in a row that brought a process nothing: refusals, and writes without a change.

    Requests are the same if method, object and process are; those of creations with one generateName are,
    too. One that succeeds ends the row. Each change of an object is a reason to write the status of
    its owner, and of the budgets that select it, and one request more is allowed.
    Source: client-go 1.36, DefaultTypedControllerRateLimiter.
    """

    about = Invariant(
        name="retries-back-off",
        description="A process that repeats a request in vain waits longer each time: it makes no more than "
        + ", and no more than ".join(f"{count} within {seconds:g} s" for count, seconds in _LIMITS)
        + ".",
        checks="requests of components that were refused or changed nothing",
    )
    kinds = frozenset({POD, REPLICA_SET, JOB, POD_DISRUPTION_BUDGET})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._rows: dict[tuple[object, ...], deque[float]] = {}
        self._versions: dict[tuple[object, ...], int] = {}
        self._reasons: Counter[tuple[str, str, str]] = Counter()
        """Changes of owned or selected objects, by kind, namespace and name of the owner or budget."""
        self._budgets: dict[str, Revision] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Count a change of an object that an owner or a budget has."""
        obj = revision.object or revision.previous
        for owner in () if obj is None else metadata_of(obj).ownerReferences:
            self._count((owner.kind, revision.namespace, owner.name))
        if revision.kind is POD_DISRUPTION_BUDGET:
            self._budgets[revision.key] = revision
            if revision.object is None:
                del self._budgets[revision.key]
        elif revision.kind is POD:
            pods = [each for each in (revision.before(POD), revision.after(POD)) if each is not None]
            budgets = self._budgets.values()
            chosen = [each for pod in pods for each, _ in selecting(budgets, pod, revision.namespace)]
            for name in {each.name for each in chosen}:
                self._count((POD_DISRUPTION_BUDGET.kind, revision.namespace, name))
        yield from ()

    def _count(self, key: tuple[str, str, str]) -> None:
        self._reasons[key] = min(self._reasons[key] + 1, _REASONS_MAX)

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Count an answer, or end the row of its request. The scenario's own client may ask often."""
        if answer.client == USER:
            return
        name = answer.generate_name or answer.name
        key = (answer.client_pid, answer.method, answer.kind, answer.namespace, name)
        owner = answer.kind.kind, answer.namespace, answer.name
        if answer.outcome in _ENDS and not self._is_idle(key, answer):
            self._rows.pop(key, None)
            self._reasons.pop(owner, None)
            return
        self.checked += 1
        if self._reasons[owner] > 0:
            self._reasons[owner] -= 1
            return
        row = self._rows.setdefault(key, deque(maxlen=_KEPT))
        if answer.generate_name and row and answer.begin_time - row[-1] < _TOGETHER_SECONDS:
            return
        row.append(answer.begin_time)
        for count, seconds in _LIMITS:
            if len(row) > count and row[-1] - row[-1 - count] <= seconds:
                row.clear()
                yield self._violation(answer, count + 1, seconds)
                return

    def _is_idle(self, key: tuple[object, ...], answer: Answer) -> bool:
        """Return whether a write has changed nothing: its answer has the version of the one before."""
        if answer.method not in _NAMED or not answer.resource_version:
            return False
        before = self._versions.get(key)
        self._versions[key] = answer.resource_version
        return before == answer.resource_version

    def _violation(self, answer: Answer, count: int, seconds: float) -> Violation:
        name = f"{answer.generate_name}*" if answer.generate_name else answer.name
        subject = subject_of(answer.kind, answer.namespace, name)
        ended = "changed nothing" if answer.outcome is Outcome.DONE else f"was {answer.outcome.value!r}"
        return self.violation(
            f"{answer.client or 'a client'} made {count} requests to {answer.method.value} {subject} within "
            f"{seconds:g} s, each in vain; the last one {ended}",
            objects=(subject,),
        )
