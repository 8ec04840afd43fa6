"""Apply the perturbations of a case to a scenario: before it, at its steps, and beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.moves import catch_up, lag
from nominee.lab.chaos.cases.perturbations import (
    AWAY_SECONDS,
    BY_ANOTHER,
    CRASHES,
    FREEZE_SECONDS,
    INTERFERENCE_SECONDS,
    Absence,
    Action,
    AtFailpoint,
    FromStep,
    Loss,
    OfCall,
    OfClock,
    OfNetwork,
    OfProcess,
    OfWatch,
    ToServer,
    View,
)
from nominee.lab.chaos.cases.tolerance import Relaxed
from nominee.lab.chaos.crashing import Crashes, crash_in_a_row
from nominee.lab.chaos.interfering import interfere, touch_all
from nominee.lab.scenario.acting.base import Action as StepAction
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.fields.options import ClusterOptions, ClusterOverrides
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.steps.faults.clock import ShiftClock
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.faults.fault import InjectFault
from nominee.lab.scenario.steps.processes.restart import Restart
from nominee.lab.scenario.steps.processes.stop import Kill
from nominee.localcluster.cluster import ClusterError
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.runtime.faults.failpoint_registry import PointState

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

POLL_SECONDS = 0.05
RECONNECT_SECONDS = 0.2
SETTLE_SECONDS = 1.0
_FAULTS: Mapping[View, str] = {
    View.STALE: "hold",
    View.MERGE: "merge",
    View.RELIST: "hold",
    View.RECONNECT: "hold",
    View.SILENT: "hold",
}
_BREAKS: Mapping[View, str] = {View.RELIST: "1*relist", View.RECONNECT: "1*cut", View.SILENT: "1*cut"}
"""Faults at the end, with which the withheld events are lost."""
_WAITING = BY_ANOTHER | {Action.PAUSE}
Points = Mapping[str, Mapping[str, PointState]]
"""Failpoints by process and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restart(Restart):
    """Kill a process and start it as it was; it has time to take over its objects before the next step.

    `away_seconds`: the time between both.
    """

    away_seconds: float = 0.0

    async def launch(self, stage: Stage) -> None:
        """Restart the process, and wait."""
        if self.away_seconds:
            await stage.cluster.stop(self.component, kill=True)
            await stage.cluster.clock.sleep(self.away_seconds)
            await stage.cluster.start(self.component, None)
        else:
            await stage.cluster.restart(self.component, None, kill=True)
        await stage.cluster.clock.sleep(SETTLE_SECONDS)


class Perturbing:
    """The perturbations of one run; `launches` are the steps that start the processes that do not run yet.

    `is_new`: the cluster was started for this run, with `first_start`.
    """

    def __init__(
        self, case: Case, cluster: ScenarioCluster, launches: Mapping[str, int], *, is_new: bool
    ) -> None:
        self._case, self._cluster, self._launches, self._is_new = case, cluster, launches, is_new
        self.begin_events = {str(each): anyio.Event() for each in case.from_steps}
        """Set when the step of a perturbation begins."""
        self._over = {str(each): anyio.Event() for each in [*_held(case), *_absences(case)]}
        self._before: Points = {}
        self._effective: set[str] = set()
        """The perturbations by another client, the partitions, and the crash loops, that had an effect."""
        self._restarts: Mapping[str, int] = {}

    async def prepare(self) -> Sequence[StepAction]:
        """Note the state before the run; return the actions before the first step."""
        self._before = await points(self._cluster)
        self._restarts = await restarts(self._cluster)
        first: list[StepAction] = [
            of_failpoint(each) for each in self._case.failpoints if each.component not in self._launches
        ]
        first += [of_call(each) for each in self._case.calls if each.component not in self._launches]
        return first

    def scenario(self, found: Relaxed) -> Scenario:
        """Return the relaxed scenario with the steps that set the perturbations."""
        steps: list[Step] = []
        waiting = list(self._case.from_steps)
        for number, step in zip(found.numbers, found.scenario.steps, strict=True):
            due = [each for each in waiting if each.step <= number]
            waiting = [each for each in waiting if each.step > number]
            steps += [self._before_step(each, step, found.scenario) for each in due]
            steps += self._launch(number, step)
        return replace(found.scenario, steps=tuple(steps))

    def _before_step(self, each: FromStep, step: Step, scenario: Scenario) -> Step:
        """Return the step that sets a perturbation before another step."""
        if not (isinstance(each, OfProcess) and each.absence is Absence.CRASH_LOOP):
            return _before_step(each, step)
        over = self._over[str(each)] if _is_awaited(each) else None
        crashes = Crashes(component=each.component, has_supervisor=scenario.cluster.restart, over=over)
        return Step(action=crashes, verb="kill", line=step.line, name=str(each))

    def _launch(self, number: int, step: Step) -> Iterator[Step]:
        """Yield a step, and after one that starts a process of the case, the steps that disturb this process.

        A new cluster has the failpoints in the options of the first start (`first_start`), where they act
        before the process is ready.
        """
        yield step
        started = [name for name, launch in self._launches.items() if launch == number]
        actions: list[StepAction] = [of_call(each) for each in self._case.calls if each.component in started]
        if not self._is_new:
            actions += [of_failpoint(each) for each in self._case.failpoints if each.component in started]
        for action in actions:
            yield Step(action=action, verb=action.verb, line=step.line)

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start the tasks beside the steps."""
        for each in self._case.perturbations:
            if isinstance(each, OfWatch | OfNetwork):
                tasks.start_soon(self._end_hold, each)
            elif isinstance(each, OfProcess) and str(each) in self._over:
                follow = self._crash if each.absence is Absence.CRASH_LOOP else self._end_absence
                tasks.start_soon(follow, each)
            elif isinstance(each, AtFailpoint) and each.action in _WAITING:
                tasks.start_soon(self._while_it_waits, each)
            elif isinstance(each, OfCall) and each.loss is Loss.CONFLICT:
                tasks.start_soon(self._overtake, each)

    async def finish(self) -> None:
        """Wait until the views, cuts and absences that have begun are over: they last as long as they say."""
        for name, over in self._over.items():
            if self.begin_events[name].is_set():
                await over.wait()

    async def _end_hold(self, each: OfWatch | OfNetwork) -> None:
        """End a change of a watch, or a partition, some time after it began."""
        await self.begin_events[str(each)].wait()
        await self._cluster.clock.sleep(each.hold_seconds)
        fault = _of_hold(each)
        with suppress(ClusterError):
            if isinstance(each, OfWatch) and each.view in _BREAKS:
                await self._inject(replace(fault, action=_BREAKS[each.view]))
                await self._cluster.clock.sleep(RECONNECT_SECONDS)
            if isinstance(each, OfNetwork):
                if await self._has_acted(fault, where_unknown=True):
                    self._effective.add(str(each))
                # "off" would remove the faults of single calls to this server, too.
                await self._inject(replace(fault, action="1*off"))
            else:
                await self._inject(replace(fault, action="off"))
        self._over[str(each)].set()

    async def _end_absence(self, each: OfProcess) -> None:
        """Start a process some time after it was killed, unless a step of the scenario has started it."""
        await self.begin_events[str(each)].wait()
        await self._cluster.clock.sleep(AWAY_SECONDS)
        with suppress(ClusterError):
            await self._cluster.start(each.component, None)
        self._over[str(each)].set()

    async def _crash(self, each: OfProcess) -> None:
        """Kill a process again and again."""
        await self.begin_events[str(each)].wait()
        if await crash_in_a_row(self._cluster, each.component, CRASHES) == CRASHES:
            self._effective.add(str(each))
        self._over[str(each)].set()

    async def _inject(self, fault: InjectFault) -> None:
        await self._cluster.inject_fault(
            fault.component, fault.action, to=fault.to, method=fault.method, kind=fault.kind
        )

    async def _while_it_waits(self, each: AtFailpoint) -> None:
        """Wait for a task at the failpoint; freeze the process or disturb the object, and let it go on."""
        labels = await self._labels_at(each)
        with anyio.CancelScope(shield=True), suppress(ClusterError):
            if each.action is Action.PAUSE:
                await self._cluster.pause(each.component)
                await self._cluster.clock.sleep(FREEZE_SECONDS)
                await self._cluster.resume(each.component)
            else:
                if await interfere(self._cluster.client, each.action, labels, self._cluster.clock):
                    self._effective.add(str(each))
                await self._cluster.clock.sleep(INTERFERENCE_SECONDS)
            await self._cluster.arm_failpoint(each.component, each.failpoint, "off")

    async def _overtake(self, each: OfCall) -> None:
        """Change the objects of the kind when the call waits."""
        while not await self._has_acted(of_call(each), where_unknown=False):
            await self._cluster.clock.sleep(POLL_SECONDS)
        with anyio.CancelScope(shield=True):
            if await touch_all(self._cluster.client, each.kind, self._cluster.clock):
                self._effective.add(str(each))

    async def _has_acted(self, fault: InjectFault, *, where_unknown: bool) -> bool:
        """Return whether a fault of calls has acted; of a process that cannot be asked it is unknown."""
        try:
            rules = (await self._cluster.call_faults(fault.component)).rules
        except ClusterError:
            return where_unknown
        wanted = fault.to, fault.method, fault.kind, fault.action
        return any(
            rule.fired
            for rule in rules
            if (rule.to, rule.method, rule.kind.partition(".")[0], rule.action) == wanted
        )

    async def _labels_at(self, each: AtFailpoint) -> Mapping[str, str]:
        """Return the labels of the hit at which a task waits, when one does."""
        while True:
            with suppress(ClusterError):
                for point in await self._cluster.failpoints(each.component):
                    if point.name == each.failpoint and point.waiting:
                        return point.last
            await self._cluster.clock.sleep(POLL_SECONDS)

    async def reached(self, after: Points) -> bool:
        """Return whether every perturbation took effect; `after` are the failpoints after the run."""
        now = await restarts(self._cluster)
        for each in self._case.perturbations:
            is_restarted = now.get(each.component) != self._restarts.get(each.component)
            if isinstance(each, OfNetwork):
                if not is_restarted and str(each) not in self._effective:
                    return False
            elif isinstance(each, FromStep):
                if not self.begin_events[str(each)].is_set():
                    return False
                is_loop = isinstance(each, OfProcess) and each.absence is Absence.CRASH_LOOP
                if is_loop and str(each) not in self._effective:
                    return False
            elif isinstance(each, AtFailpoint) and each.action is Action.CRASH:
                if not is_restarted:
                    return False
            elif not is_restarted and not await self._acted(each, after):
                # A process that was restarted meanwhile has lost the count; assume that it was reached.
                return False
        return True

    async def _acted(self, each: AtFailpoint | OfCall, after: Points) -> bool:
        """Return whether a failpoint or a fault has acted, and the other client, if the action is its."""
        by_another = (
            each.action in BY_ANOTHER if isinstance(each, AtFailpoint) else each.loss is Loss.CONFLICT
        )
        if by_another and str(each) not in self._effective:
            return False
        if isinstance(each, AtFailpoint):
            points_of = (found.get(each.component, {}).get(each.failpoint) for found in (self._before, after))
            before, now = (0 if point is None else point.fired for point in points_of)
            return now != before
        return await self._has_acted(of_call(each), where_unknown=True)


async def calm(cluster: ScenarioCluster, case: Case, after: Points) -> None:
    """Disarm all failpoints, and remove all faults of calls, also those of the scenario's own steps."""
    for process, states in after.items():
        for point in states.values():
            if point.action and point.action != "off":
                with suppress(ClusterError):
                    await cluster.arm_failpoint(process, point.name, "off")
    await catch_up(cluster, case)
    for process in after:
        with suppress(ClusterError):
            await cluster.inject_fault(process, "off")
    for each in case.perturbations:
        with suppress(ClusterError):
            if isinstance(each, OfClock):
                await cluster.shift_clock(each.component, 0.0)


def _before_step(each: FromStep, step: Step) -> Step:
    """Return the step that sets a perturbation before another step."""
    match each:
        case ToServer():
            return Step(action=lag(each), verb="fault", line=step.line, name=str(each))
        case OfClock():
            shift = ShiftClock(component=each.component, offset_seconds=each.offset_seconds)
            return Step(action=shift, verb="clock", line=step.line, name=str(each))
        case OfProcess(absence=Absence.AWAY) if not _is_awaited(each):
            return Step(action=Kill(component=each.component), verb="kill", line=step.line, name=str(each))
        case OfProcess():
            away = AWAY_SECONDS if each.absence is Absence.AWAY else 0.0
            restart = _Restart(component=each.component, kill=True, away_seconds=away)
            return Step(action=restart, verb="restart", line=step.line, name=str(each))
        case _:
            return Step(action=_of_hold(each), verb="fault", line=step.line, name=str(each))


def _held(case: Case) -> list[OfWatch | OfNetwork]:
    """Return the changes of watches and the partitions, which end beside the scenario."""
    return [each for each in case.perturbations if isinstance(each, OfWatch | OfNetwork)]


def _absences(case: Case) -> list[OfProcess]:
    """Return the absences that end beside the scenario."""
    return [
        each
        for each in case.perturbations
        if isinstance(each, OfProcess)
        and (each.absence is Absence.CRASH_LOOP or (each.absence is Absence.AWAY and not _is_awaited(each)))
    ]


def _is_awaited(each: OfProcess) -> bool:
    """Return whether the scenario waits for the process: without an API server no step succeeds."""
    return each.component.startswith("apiserver")


def first_start(options: ClusterOptions, case: Case, launches: Mapping[str, int]) -> ClusterOptions:
    """Return the options of a new cluster: processes that a step starts have their failpoints from then on.

    A restarted process does not have them again.
    """
    armed: dict[str, dict[str, str]] = {}
    for each in case.failpoints:
        if each.component in launches:
            armed.setdefault(each.component, {})[each.failpoint] = each.failpoint_action
    return ClusterOverrides(failpoints=armed).applied_to(options)


def of_failpoint(each: AtFailpoint) -> ArmFailpoint:
    """Return the step that arms a failpoint."""
    return ArmFailpoint(component=each.component, name=each.failpoint, action=each.failpoint_action)


def _of_hold(each: OfWatch | OfNetwork) -> InjectFault:
    """Return the fault that changes a watch, or that cuts a process off."""
    if isinstance(each, OfNetwork):
        return InjectFault(component=each.component, to=each.server, action=each.partition.value)
    of_etcd = each.component.startswith("apiserver")
    return InjectFault(
        component=each.component,
        to="etcd" if of_etcd else "apiserver",
        method="Watch" if each.view in (View.RECONNECT, View.SILENT) else "*",
        kind="*" if of_etcd else each.kind,
        action=_FAULTS[each.view],
    )


def of_call(each: OfCall) -> InjectFault:
    """Return the fault of a call."""
    return InjectFault(
        component=each.component,
        to=each.server,
        method=each.method,
        kind=each.kind or "*",
        action=each.fault_action,
    )


async def points(cluster: ScenarioCluster) -> dict[str, dict[str, PointState]]:
    """Return the failpoints of every process that has some and runs."""
    found = {}
    for process in await cluster.processes():
        if process.component == "etcd":
            continue
        with suppress(ClusterError):
            found[process.name] = {point.name: point for point in await cluster.failpoints(process.name)}
    return found


async def restarts(cluster: ScenarioCluster) -> dict[str, int]:
    """Return how often each process was restarted; one that has died and will be restarted counts as such."""
    return {
        process.name: process.restarts + (process.state == ChildState.BACKOFF)
        for process in await cluster.processes()
    }
