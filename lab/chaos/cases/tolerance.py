"""The promises of a scenario that still count when something is broken in it. No I/O.

A restart takes seconds, and a restarted process has forgotten its counters and armed failpoints. So in a
disturbed run

- invariants (but for those of excepted.py) and the expectations over the whole run count as they are;
- `eventually` and `wait` have twice the time that the undisturbed run needed, and RECOVERY_SECONDS; after a
  call that hangs also its deadline, as long as a watch is silent, after calls that fail in a row the
  back-offs, and after a crash loop the supervisor's pauses. A condition on objects counts, too, if it held
  since the last step that changed something: a step that was late may miss a state that does not last
  (lab/chaos/earlier.py);
- `always` and `never` for a time count as they are where the perturbations do not touch the condition: it is
  about objects, and no API server is disturbed, through which they are read; else, and for `now`, the
  condition must hold eventually, and `never` is left out: these describe a moment of the undisturbed run. A
  check of the scenario may say `whenDisturbed`;
- a step that may fail keeps its time: nothing depends on its end;
- what asks a process for its memory (metrics, failpoints, queues, debug pages, restarts) is left out where
  that process is killed;
- the checks of objects that still hold after the undisturbed run must hold when the cluster has come to rest;
- a `wait` that ended in the undisturbed run must end, unless it asks a disturbed process for its memory, or
  is about a pod that was patched and that the disturbance has created again.

With `rules_alone` no check counts, only the invariants and the rules of rest: for scenarios whose checks are
about moments of the undisturbed run.

Steps and their lines keep their numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import (
    AWAY_SECONDS,
    JUMP_SECONDS,
    SILENCE_SECONDS,
    Absence,
    Action,
    Loss,
    OfClock,
    OfProcess,
    OfWatch,
    View,
)
from nominee.lab.scenario.acting.control import Control
from nominee.lab.scenario.conditions.component import ComponentCondition
from nominee.lab.scenario.conditions.debug import DebugCondition
from nominee.lab.scenario.conditions.failpoint import FailpointCondition
from nominee.lab.scenario.conditions.metric import MetricCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.queue import QueueCondition
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.observing.base import Condition, leaves
from nominee.lab.scenario.steps.expect import Expect, Mode, WhenDisturbed
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.node_group import ResizeGroup
from nominee.lab.scenario.steps.objects.drain import Drain
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api import kinds

FACTOR = 2.0
RECOVERY_SECONDS = 35.0
"""For restarts, back-offs, leases that run out, and a restarted kubelet, which retries resizes after 30 s."""
BACK_OFF_SECONDS = 35.0
"""Of a pod whose calls fail CALLS_IN_A_ROW times: 1, 2, 4, 8, 10 and 10 s (podMaxBackoffSeconds)."""
CRASH_LOOP_SECONDS = 10.0
"""For CRASHES starts, and the supervisor's pauses between them."""
HANG_SECONDS = 60.0
"""The longest deadline of a call: that of a list."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A scenario for disturbed runs, and for each of its steps the number of the original one."""

    scenario: Scenario
    numbers: tuple[int, ...]


def rules_alone(scenario: Scenario) -> Scenario:
    """Return the scenario with steps and checks that may fail, so that nothing but the rules counts."""
    return replace(scenario, steps_may_fail=True, checks_may_fail=True, background=())


def only_rules_count(scenario: Scenario) -> bool:
    """Return whether steps may fail and no check counts: a pod may be gone then, or a process away."""
    has_checks = any(step.is_check for step in scenario.steps) or scenario.background
    return scenario.steps_may_fail and (scenario.checks_may_fail or not has_checks)


def relaxed(scenario: Scenario, case: Case, needed: Mapping[int, float]) -> Relaxed:
    """Return the scenario with the steps and conditions that still count with the perturbations of a case.

    `needed` is how long each step (1 is the first) took in the undisturbed run, in seconds.
    """
    recovery = RECOVERY_SECONDS + hang_seconds(case) + _repeated_seconds(case)
    steps = []
    for number, step in enumerate(scenario.steps, start=1):
        is_loose = _is_loose(scenario, step)
        changed = step if is_loose else _step(step, case, needed.get(number, 0.0) * FACTOR + recovery)
        if changed is not None:
            steps.append((number, changed))
    return Relaxed(
        replace(
            scenario,
            steps=tuple(step for _, step in steps),
            timeout_seconds=scenario.timeout_seconds + len(steps) * recovery,
            background=tuple(each for each in scenario.background if _counts(each.condition, case)),
        ),
        tuple(number for number, _ in steps),
    )


def _is_loose(scenario: Scenario, step: Step) -> bool:
    """Return whether a step that may fail keeps its time; one for which others wait gets more."""
    if isinstance(step.action, Expect):
        return scenario.checks_may_fail and step.action.mode is not Mode.EVENTUALLY
    return scenario.steps_may_fail and not (isinstance(step.action, Wait) and scenario.checks_may_fail)


def _counts(condition: Condition, case: Case) -> bool:
    """Return whether a check over the whole run still counts.

    After the API server was away, the watches come back one by one: objects of two kinds may be shown as of
    different revisions, and never have been so together. A pod that the disturbance itself deletes may be one
    that is otherwise never deleted.
    """
    if asks(condition, case.killed) or (kinds.POD in condition.watched() and _deletes_pods(case)):
        return False
    return len(set(condition.watched())) < 2 or not _disturbs_api_server(case)


def _deletes_pods(case: Case) -> bool:
    return any(each.action in (Action.RECREATE, Action.REMOVE) for each in case.failpoints)


def _disturbs_api_server(case: Case) -> bool:
    return any(is_among(process, {"apiserver"}) for process in case.components)


def hang_seconds(case: Case) -> float:
    """Return how long the perturbations of a case may stop a process.

    By calls that hang, watches that are silent, clocks that jump, and absences.
    """
    away = sum(isinstance(each, OfProcess) and each.absence is Absence.AWAY for each in case.perturbations)
    jumps = sum(isinstance(each, OfClock) for each in case.perturbations)
    return (
        HANG_SECONDS * sum(each.loss is Loss.HANG for each in case.calls)
        + JUMP_SECONDS * jumps
        + AWAY_SECONDS * away
        + SILENCE_SECONDS * len(silent_watches(case))
    )


def silent_watches(case: Case) -> Sequence[OfWatch]:
    """Return the watches that the perturbations of a case leave silent."""
    return [each for each in case.perturbations if isinstance(each, OfWatch) and each.view is View.SILENT]


def _repeated_seconds(case: Case) -> float:
    """Return how much longer than a call that fails once, and a restart, those of a case last."""
    loops = sum(
        isinstance(each, OfProcess) and each.absence is Absence.CRASH_LOOP for each in case.perturbations
    )
    lost = sum(each.loss in (Loss.LOSE_REQUESTS, Loss.LOSE_RESPONSES) for each in case.calls)
    return CRASH_LOOP_SECONDS * loops + BACK_OFF_SECONDS * lost


def _step(step: Step, case: Case, seconds: float) -> Step | None:
    match step.action:
        case Wait(condition=condition) | Expect(condition=condition) if asks(condition, case.killed):
            return None
        case Expect() if _is_strict(step.action, case):
            return step
        case Expect(mode=Mode.NEVER):
            return None
        case Drain() | ResizeGroup():
            return replace(step, action=replace(step.action, seconds=max(seconds, step.action.seconds)))
        case Wait():
            return replace(step, action=replace(step.action, seconds=seconds))
        case Expect():
            return replace(step, action=replace(step.action, mode=Mode.EVENTUALLY, seconds=seconds))
        case _:
            return step


def _is_strict(check: Expect, case: Case) -> bool:
    """Return whether a check counts as it is written."""
    if check.when_disturbed is not WhenDisturbed.BY_CASE:
        return check.when_disturbed is WhenDisturbed.STRICT
    return (
        check.mode in (Mode.ALWAYS, Mode.NEVER)
        and not _disturbs_api_server(case)
        and not _deletes_pods(case)
        and all(isinstance(leaf, ObjectCondition) for leaf in leaves(check.condition))
    )


def asks(condition: Condition, processes: Collection[str]) -> bool:
    """Return whether a condition asks one of these processes for its memory."""
    for leaf in leaves(condition):
        match leaf:
            case (
                MetricCondition(component=component)
                | QueueCondition(component=component)
                | FailpointCondition(component=component)
                | DebugCondition(component=component)
                | ComponentCondition(name=component)
            ) if any(is_among(process, {component}) for process in processes):
                return True
    return False


def doubtful_waits(scenario: Scenario, case: Case) -> frozenset[int]:
    """Return the lines of the waits that may not end although nothing is wrong.

    Those that ask a disturbed process for its memory; and, where the disturbance deletes pods and creates
    them again, those about pods that an earlier step has patched: the new pod has no patch.
    """
    found: set[int] = set()
    patched: set[str] = set()
    for step in scenario.steps:
        match step.action:
            case Patch(kind=kind, name=name) if kind == kinds.POD.kind and _deletes_pods(case):
                patched.add(name)
            case Wait(condition=condition):
                objects = [leaf for leaf in leaves(condition) if isinstance(leaf, ObjectCondition)]
                if asks(condition, case.components) or any(leaf.name in patched for leaf in objects):
                    found.add(step.line)
    return frozenset(found)


def is_among(process: str, names: Collection[str]) -> bool:
    """Return whether one of these names of a scenario (`kubelet`) stands for a process (`kubelet-0`)."""
    return any(process == name or process.startswith(f"{name}-") for name in names)


def controlled(scenario: Scenario) -> frozenset[tuple[str, str]]:
    """Return the failpoints that the scenario itself arms: an exploration leaves them to it."""
    return frozenset(
        (step.action.component, step.action.name)
        for step in scenario.steps
        if isinstance(step.action, ArmFailpoint)
    )


def absences(scenario: Scenario) -> frozenset[tuple[str, int]]:
    """Return the components that a step has stopped, with the numbers of the steps while they are down."""
    found: set[tuple[str, int]] = set()
    down: set[str] = set()
    for number, step in enumerate(scenario.steps, start=1):
        found |= {(component, number) for component in down}
        if isinstance(step.action, Control):
            (down.discard if step.action.runs else down.add)(step.action.component)
    return frozenset(found)


def changes(scenario: Scenario) -> list[int]:
    """Return the numbers of the steps that change objects of the cluster: all but waits, checks, faults."""
    return [
        number
        for number, step in enumerate(scenario.steps, start=1)
        if not isinstance(step.action, Wait | Expect | Control | ArmFailpoint)
    ]


def states(scenario: Scenario) -> tuple[int, ...]:
    """Return the numbers of the checks of objects, which may still hold when the run is over.

    Events, metrics and queues are left out: a process that is killed may not come to record an event.
    """
    if scenario.checks_may_fail:
        return ()
    return tuple(
        number
        for number, step in enumerate(scenario.steps, start=1)
        if isinstance(step.action, Expect)
        and step.action.mode is not Mode.NEVER
        and all(isinstance(leaf, ObjectCondition) for leaf in leaves(step.action.condition))
    )


def only(scenario: Scenario, numbers: Collection[int], seconds: float) -> Scenario:
    """Return the scenario with these checks alone, which must hold within this time."""
    steps = []
    for number, step in enumerate(scenario.steps, start=1):
        if number in numbers and isinstance(step.action, Expect):
            action = replace(step.action, mode=Mode.EVENTUALLY, seconds=seconds)
            steps.append(replace(step, action=action))
    return replace(scenario, steps=tuple(steps), background=())
