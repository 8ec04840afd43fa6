"""Scenarios in which another program runs in a component's place (`--replace`). No I/O.

A condition on the memory of a component (queues, metrics, failpoints, debug pages) is read from the API where
that shows it, and else left out. A scenario that needs Nominee's own component for a step is not played.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from nominee.lab.scenario.acting.control import Launch
from nominee.lab.scenario.conditions.combined import AnyOf
from nominee.lab.scenario.conditions.debug import DebugCondition
from nominee.lab.scenario.conditions.failpoint import FailpointCondition
from nominee.lab.scenario.conditions.metric import MetricCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.queue import QueueCondition
from nominee.lab.scenario.fields.comparison import NONE, Comparison
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.format.model import Background, Scenario, Step
from nominee.lab.scenario.measures.collector import conditions_of
from nominee.lab.scenario.observing.base import Combination, Condition, leaves
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.faults.clock import ShiftClock
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.faults.fault import InjectFault
from nominee.lab.scenario.steps.wait import Wait

REPLACEABLE = ("scheduler", "controllers", "autoscaler")
Programs = Mapping[str, Sequence[str]]
"""Command lines by component."""
_REASONS: Mapping[str, str] = {"unschedulable": "Unschedulable", "gated": "SchedulingGated"}
"""The reason of PodScheduled=False by the queue in which the pod is."""


class ReplaceError(ValueError):
    """A value of --replace cannot be read; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """The scenario with the programs; `obstacle` says why it cannot be played with them, or is ""."""

    scenario: Scenario
    obstacle: str = ""


def parse_programs(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the command lines of `COMPONENT=COMMAND` texts by component.

    Raises:
        ReplaceError: a text has no such form, or no program can be in the component's place.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        component, equals, command = text.partition("=")
        if component not in REPLACEABLE:
            raise ReplaceError(f"{component!r} cannot be replaced; write {' or '.join(REPLACEABLE)}")
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise ReplaceError(f"{command!r}: {error}") from None
        if not equals or not words:
            raise ReplaceError(f"{text!r} has no command; write {component}=COMMAND")
        if component in found:
            raise ReplaceError(f"{component} is replaced twice")
        found[component] = words
    return found


def words_of(programs: Programs) -> list[str]:
    """Return the options that `parse_programs` reads."""
    return [
        word
        for component, command in programs.items()
        for word in ("--replace", f"{component}={shlex.join(command)}")
    ]


def with_programs(cluster: ClusterOptions, programs: Programs) -> ClusterOptions:
    """Return the cluster with these programs; its gates and configuration are `{gates}` and `{config}`."""
    components = dict(cluster.components)
    for name, command in programs.items():
        if name in cluster.without:
            continue
        own = cluster.component(name)
        components[name] = ComponentOptions(
            command=tuple(command), config=own.config, feature_gates=own.feature_gates, stopped=own.stopped
        )
    return replace(cluster, components=components)


def adapt(scenario: Scenario, programs: Programs) -> Adaptation:
    """Return the scenario with programs in the places of components that its cluster has."""
    present = {name: command for name, command in programs.items() if name not in scenario.cluster.without}
    if not present:
        return Adaptation(scenario=scenario)
    if obstacle := _obstacle(scenario, present):
        return Adaptation(scenario=scenario, obstacle=obstacle)
    left_out: list[str] = []
    return Adaptation(
        scenario=replace(
            scenario,
            cluster=with_programs(scenario.cluster, present),
            steps=tuple(_steps(scenario.steps, present, left_out)),
            background=tuple(_background(scenario.background, present, left_out)),
            measures=tuple(
                each
                for each in scenario.measures
                if not any(_asks(leaf, present) for one in conditions_of([each]) for leaf in leaves(one))
            ),
            left_out=tuple(left_out),
        )
    )


def _obstacle(scenario: Scenario, programs: Collection[str]) -> str:
    for name in programs:
        own = scenario.cluster.component(name)
        if own.replicas > 1:
            return f"{own.replicas} processes of {name} cannot be another program"
        if own.arguments or own.failpoints or own.emulated_version:
            return f"its options of {name} are for Nominee's"
    for step in scenario.steps:
        match step.action:
            case ArmFailpoint(component=name) | InjectFault(component=name) | ShiftClock(component=name):
                needs = _is_of(name, programs)
            case Launch(component=name, changes_options=changes):
                needs = changes and _is_of(name, programs)
            case _:
                needs = False
        if needs:
            return f"line {step.line} needs Nominee's {name}: {step.action.describe()}"
    return ""


def _is_of(process: str, programs: Collection[str]) -> bool:
    return process in programs or process.rpartition("-")[0] in programs


def _steps(steps: Sequence[Step], programs: Collection[str], left_out: list[str]) -> list[Step]:
    """Return the steps that can be performed.

    After a wait that is left out, `now` is within the usual time.
    """
    found, waited = [], True
    for step in steps:
        action = step.action
        if not isinstance(action, Wait | Expect):
            found.append(step)
            continue
        is_never = isinstance(action, Expect) and action.mode is Mode.NEVER
        condition = _answerable(action.condition, programs, is_never=is_never)
        if condition is None:
            left_out.append(action.condition.describe())
            waited &= not isinstance(action, Wait)
            continue
        if condition != action.condition:
            left_out += _unanswered(action.condition, programs)
        changed: Wait | Expect = replace(action, condition=condition)
        if isinstance(changed, Expect) and changed.mode is Mode.NOW and not waited:
            changed = replace(changed, mode=Mode.EVENTUALLY)
        found.append(replace(step, action=changed))
    return found


def _background(
    background: Sequence[Background], programs: Collection[str], left_out: list[str]
) -> list[Background]:
    found = []
    for each in background:
        condition = _answerable(each.condition, programs, is_never=each.mode is Mode.NEVER)
        if condition is None:
            left_out.append(each.condition.describe())
        else:
            found.append(replace(each, condition=condition))
    return found


def _answerable(condition: Condition, programs: Collection[str], *, is_never: bool) -> Condition | None:
    """Return the condition as the API answers it, None if it does not.

    A part may be left out if the rest promises less: of `all`, or, of a condition that never holds, of `any`.
    """
    if isinstance(condition, Combination):
        parts = [_answerable(each, programs, is_never=is_never) for each in condition.conditions]
        kept = [each for each in parts if each is not None]
        may_shrink = isinstance(condition, AnyOf) == is_never
        if not kept or (len(kept) < len(parts) and not may_shrink):
            return None
        return replace(condition, conditions=kept)
    if not _asks(condition, programs):
        return condition
    return _from_api(condition) if isinstance(condition, QueueCondition) else None


def _asks(condition: Condition, programs: Collection[str]) -> bool:
    match condition:
        case (
            QueueCondition(component=name)
            | MetricCondition(component=name)
            | FailpointCondition(component=name)
            | DebugCondition(component=name)
        ):
            return _is_of(name, programs)
        case _:
            return False


def _unanswered(condition: Condition, programs: Collection[str]) -> list[str]:
    """Return the descriptions of the parts that the API does not answer."""
    return [
        leaf.describe() for leaf in leaves(condition) if _answerable(leaf, programs, is_never=False) is None
    ]


def _from_api(queue: QueueCondition) -> Condition | None:
    """Return the state of a pod in the scheduling queue as its status shows it, None if it does not."""
    if not queue.pod:
        return None
    pod = ObjectCondition(kind="Pod", name=queue.pod, namespace=queue.namespace)
    if reason := _REASONS.get(queue.queue):
        return replace(pod, conditions=(f"PodScheduled=False/{reason}",))
    if queue.queue:
        return None
    bound = replace(pod, json_path={".spec.nodeName": Comparison(present=True)})
    return AnyOf(conditions=[bound, replace(pod, count=NONE)])
