"""Run a scenario once with the perturbations of a case, on any ScenarioCluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.abc

from nominee.lab.chaos.cases.case import (
    FREEZE_SECONDS,
    HOLD_SECONDS,
    Action,
    AtFailpoint,
    Case,
    OfWatch,
    ToServer,
    View,
)
from nominee.lab.chaos.cases.moves import catch_up, keep_away, lag, move, move_back
from nominee.lab.chaos.cases.observations import Ran, Undisturbed
from nominee.lab.chaos.cases.rest import unrest
from nominee.lab.chaos.cases.tolerance import Relaxed, only, relaxed
from nominee.lab.chaos.cases.tolerance import states as states_of
from nominee.lab.chaos.rest.expectations import expectations_of
from nominee.lab.chaos.rest.observation import outstanding
from nominee.lab.chaos.rest.state import Expectations
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.observing.leader import leading
from nominee.lab.scenario.observing.world import World, watched_kinds
from nominee.lab.scenario.play.cleaning import clean
from nominee.lab.scenario.play.narration import Narrator, Silent
from nominee.lab.scenario.play.runner import Run
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.scenario.steps.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.fault import InjectFault
from nominee.localcluster.cluster import ClusterError, FailpointState
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError

REST_SECONDS_MAX = 20.0
LASTING_SECONDS = 5.0
QUIET_SECONDS = 0.5
"""For so long a cluster must be at rest: a process that has just started acts in this time."""
_ROUNDS_MAX = 4
"""What ends a finding may be new work, after which the cluster must come to rest again."""
_POLL_SECONDS = 0.05
_FAULTS: Mapping[View, str] = {View.STALE: "hold", View.MERGE: "merge", View.RELIST: "1*relist"}
Points = Mapping[str, Mapping[str, FailpointState]]
"""Failpoints by process and name."""


class _Steps:
    """A narrator that passes all on, and sets an event when a step of a given name begins."""

    def __init__(self, narrate: Narrator, events: Mapping[str, anyio.Event]) -> None:
        self._narrate, self._events = narrate, events
        self.heading: Callable[[str], None] = narrate.heading
        self.waits: Callable[[str], None] = narrate.waits
        self.saw: Callable[[str], None] = narrate.saw
        self.held: Callable[[str], None] = narrate.held
        self.failed: Callable[[str], None] = narrate.failed

    def act(self, text: str) -> None:
        """Report a step."""
        self._narrate.act(text)
        if text in self._events:
            self._events[text].set()


async def run_case(
    scenario: Scenario,
    case: Case,
    cluster: ScenarioCluster,
    narrate: Narrator,
    undisturbed: Undisturbed,
    *,
    clean_up: bool = True,
) -> Ran:
    """Run a scenario with the perturbations of a case, and restore the cluster if nothing failed."""
    await keep_away(cluster, case)
    before = await points(cluster)
    restarts = await _restarts(cluster)
    disturbed = scenario
    events = {str(each): anyio.Event() for each in case.perturbations if isinstance(each, OfWatch | ToServer)}
    if case.perturbations:
        disturbed = _with_faults(scenario, relaxed(scenario, case.killed, undisturbed.needed), case)
    first = [
        ArmFailpoint(component=each.component, name=each.failpoint, action=each.armed())
        for each in case.perturbations
        if isinstance(each, AtFailpoint)
    ]
    conditions = [background.condition for background in disturbed.background]
    conditions += [condition for step in disturbed.steps for condition in step.action.conditions]
    say = _Steps(narrate, events)
    world = World(cluster.client, cluster.clock, watched_kinds(conditions))
    async with anyio.create_task_group() as tasks:
        await world.open(tasks)
        run = Run(disturbed, cluster, world, say)
        async with anyio.create_task_group() as helpers:
            for each in case.perturbations:
                if isinstance(each, OfWatch):
                    helpers.start_soon(_release, cluster, each, events[str(each)])
                elif isinstance(each, AtFailpoint) and each.action is Action.PAUSE:
                    helpers.start_soon(_freeze, cluster, each)
            result = await run.play(tasks, first, ())
            helpers.cancel_scope.cancel()
        after = await points(cluster)
        lasting: list[int] = []
        reached = await _reached(case, cluster, before, after, restarts, events)
        if result.outcome is Outcome.PASSED:
            await move(cluster, case)
        await calm(cluster, case, after)
        unsettled = await rest(cluster, expectations_of(scenario))
        if result.outcome is Outcome.PASSED and not unsettled:
            if case.perturbations:
                again = Run(only(scenario, undisturbed.lasting, LASTING_SECONDS), cluster, world, narrate)
                again.variables.update(run.variables)
                result = _joined(result, await again.play(tasks, (), ()))
            else:
                lasting = await _lasting(scenario, run, cluster, world, tasks)
        later = await cluster.violations(scenario.except_invariants)
        violations = tuple(dict.fromkeys((*result.violations, *later)))
        result = replace(result, violations=violations)
        is_clean = False
        if clean_up and result.outcome is Outcome.PASSED and not violations and not unsettled:
            with suppress(ClusterError, StatusError):
                await move_back(cluster, case)
                await clean(run.stage, scenario)
                is_clean = True
        tasks.cancel_scope.cancel()
    return Ran(
        result=result,
        hits=_passed(before, after),
        reached=reached,
        unsettled=unsettled,
        is_clean=is_clean,
        lasting=tuple(lasting),
    )


async def _lasting(
    scenario: Scenario, run: Run, cluster: ScenarioCluster, world: World, tasks: anyio.abc.TaskGroup
) -> list[int]:
    """Return the numbers of the checks that hold now, after the undisturbed run."""
    found = []
    for number in states_of(scenario):
        again = Run(only(scenario, {number}, 0.0), cluster, world, Silent())
        again.variables.update(run.variables)
        if (await again.play(tasks, (), ())).outcome is Outcome.PASSED:
            found.append(number)
    return found


def _joined(result: ScenarioResult, again: ScenarioResult) -> ScenarioResult:
    """Return the result of a run whose last checks were made again after the cluster had come to rest."""
    if again.outcome is Outcome.PASSED:
        return result
    return replace(
        again,
        reason=f"when the cluster had come to rest: {again.reason}",
        seconds=result.seconds + again.seconds,
        steps=(*result.steps, *again.steps),
    )


def _with_faults(scenario: Scenario, found: Relaxed, case: Case) -> Scenario:
    """Return the relaxed scenario with a step that sets a fault before each step that a case names."""
    steps: list[Step] = []
    views = [each for each in case.perturbations if isinstance(each, OfWatch | ToServer)]
    for number, step in zip(found.numbers, found.scenario.steps, strict=True):
        due = [each for each in views if each.step <= number]
        views = [each for each in views if each.step > number]
        for each in due:
            fault = lag(each) if isinstance(each, ToServer) else _of_watch(each)
            steps.append(Step(action=fault, verb="fault", line=step.line, name=str(each)))
        steps.append(step)
    return replace(found.scenario, steps=tuple(steps))


def _of_watch(each: OfWatch) -> InjectFault:
    of_etcd = each.component.startswith("apiserver")
    return InjectFault(
        component=each.component,
        to="etcd" if of_etcd else "apiserver",
        kind="*" if of_etcd else each.kind,
        action=_FAULTS[each.view],
    )


async def points(cluster: ScenarioCluster) -> dict[str, dict[str, FailpointState]]:
    """Return the failpoints of every process that has some and runs."""
    found = {}
    for process in await cluster.processes():
        if process.component == "etcd":
            continue
        with suppress(ClusterError):
            found[process.name] = {point.name: point for point in await cluster.failpoints(process.name)}
    return found


def _passed(before: Points, after: Points) -> dict[str, dict[str, int]]:
    """Return how often each failpoint was passed in between; a process that was restarted began at 0."""
    found: dict[str, dict[str, int]] = {}
    for process, now in after.items():
        if process not in before:
            continue
        then = before[process]
        counts = {}
        for name, point in now.items():
            former = then[name].hits if name in then else 0
            counts[name] = point.hits - former if point.hits >= former else point.hits
        found[process] = {name: count for name, count in counts.items() if count}
    return found


async def _restarts(cluster: ScenarioCluster) -> dict[str, int]:
    """Return how often each process was restarted; one that has died and will be restarted counts as such."""
    return {
        process.name: process.restarts + (process.state == ChildState.BACKOFF)
        for process in await cluster.processes()
    }


async def _reached(
    case: Case,
    cluster: ScenarioCluster,
    before: Points,
    after: Points,
    restarts: Mapping[str, int],
    events: Mapping[str, anyio.Event],
) -> bool:
    """Return whether every perturbation took effect."""
    now = await _restarts(cluster)
    for each in case.perturbations:
        if isinstance(each, OfWatch | ToServer):
            if not events[str(each)].is_set():
                return False
        elif each.action is Action.CRASH:
            if now.get(each.component) == restarts.get(each.component):
                return False
        elif now.get(each.component) == restarts.get(each.component):
            # A process that was restarted meanwhile has lost the count; assume that it was reached.
            fired = [found.get(each.component, {}).get(each.failpoint) for found in (before, after)]
            if fired[0] is not None and fired[1] is not None and fired[0].fired == fired[1].fired:
                return False
    return True


async def _freeze(cluster: ScenarioCluster, each: AtFailpoint) -> None:
    """Wait until a task is at the failpoint; freeze the process, and let it go on."""
    while True:
        with suppress(ClusterError):
            states = await cluster.failpoints(each.component)
            if any(point.name == each.failpoint and point.waiting for point in states):
                break
        await cluster.clock.sleep(_POLL_SECONDS)
    with anyio.CancelScope(shield=True), suppress(ClusterError):
        await cluster.pause(each.component)
        await cluster.clock.sleep(FREEZE_SECONDS)
        await cluster.resume(each.component)
        await cluster.arm_failpoint(each.component, each.failpoint, "off")


async def _release(cluster: ScenarioCluster, each: OfWatch, begun: anyio.Event) -> None:
    """End a change of a watch some time after it began."""
    await begun.wait()
    await cluster.clock.sleep(HOLD_SECONDS)
    with suppress(ClusterError):
        await cluster.inject_fault(each.component, "off")


async def calm(cluster: ScenarioCluster, case: Case, after: Points) -> None:
    """Disarm all failpoints and remove the faults of the case."""
    for process, states in after.items():
        for point in states.values():
            if point.action and point.action != "off":
                with suppress(ClusterError):
                    await cluster.arm_failpoint(process, point.name, "off")
    await catch_up(cluster, case)
    for component in {each.component for each in case.perturbations if isinstance(each, OfWatch)}:
        with suppress(ClusterError):
            await cluster.inject_fault(component, "off")


async def rest(
    cluster: ScenarioCluster, expectations: Expectations, seconds_max: float = REST_SECONDS_MAX
) -> str:
    """Wait until the cluster is at rest, as a correct one is (lab/chaos/rest); return why it is not."""
    findings = ""
    for _ in range(_ROUNDS_MAX):
        unsettled = await _quiet(cluster, seconds_max)
        if unsettled:
            return unsettled
        findings, waited = await outstanding(cluster, expectations)
        if findings or not waited:
            break
    return findings


async def _quiet(cluster: ScenarioCluster, seconds_max: float) -> str:
    """Wait until no pod must change for QUIET_SECONDS; return the reasons if that is not in time."""
    deadline = cluster.clock.monotonic() + seconds_max
    since: float | None = None
    while True:
        found: Sequence[str] = await _unrest(cluster)
        now = cluster.clock.monotonic()
        if found:
            since = None
            if now >= deadline:
                return "; ".join(found[:5])
        elif since is None:
            since = now
        elif now - since >= QUIET_SECONDS:
            return ""
        await cluster.clock.sleep(_POLL_SECONDS)


async def _unrest(cluster: ScenarioCluster) -> list[str]:
    """Return the reasons for unrest, from the API server's own state; processes that are restarted first."""
    restarting = [
        f"{process.name} is {process.state}"
        for process in await cluster.processes()
        if process.state in (ChildState.STARTING, ChildState.RESTARTING, ChildState.BACKOFF)
    ]
    if restarting:
        return restarting
    try:
        pods = await cluster.client.list(kinds.POD)
        nodes = await cluster.client.list(kinds.NODE)
    except StatusError as error:
        return [f"the API server: {error.message}"]
    unschedulable, on_the_way = await _waiting(cluster)
    return unrest(pods.items, nodes.items, unschedulable, cluster.clock.now(), on_the_way=on_the_way)


async def _waiting(cluster: ScenarioCluster) -> tuple[frozenset[str], frozenset[str]]:
    """Return the pods that are unschedulable for the scheduler, and those on the way to a node.

    Without an answer no pod is either.
    """
    try:
        queues = await cluster.http_json(await leading(cluster, "scheduler"), "/debug/queue")
    except ClusterError:
        return frozenset(), frozenset()
    on_the_way = (*queues["binding"], *queues["waiting_on_permit"])
    unschedulable = frozenset(str(each["pod"]) for each in queues["unschedulable"])
    return unschedulable, frozenset(str(each["pod"]) for each in on_the_way)
