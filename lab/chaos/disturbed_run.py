"""Run a scenario once with the perturbations of a case, on any ScenarioCluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.abc

from nominee.lab.chaos.activity import ActivityObserver
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.excepted import without_now, without_views
from nominee.lab.chaos.cases.moves import keep_away, move, move_back
from nominee.lab.chaos.cases.observations import Activity, Ran, Undisturbed
from nominee.lab.chaos.cases.rest import (
    Deadlines,
    Reason,
    attempts_at_rest,
    busy,
    extra_seconds,
    has_events,
    is_tried,
    rewritten,
    unrest,
    work_of,
)
from nominee.lab.chaos.cases.tolerance import hang_seconds, only, relaxed
from nominee.lab.chaos.cases.tolerance import states as states_of
from nominee.lab.chaos.cases.verdict import is_accepted
from nominee.lab.chaos.earlier import Earlier
from nominee.lab.chaos.outcomes.facts import Facts, ends_of, facts_of
from nominee.lab.chaos.perturbing import POLL_SECONDS, Perturbing, Points, calm, points
from nominee.lab.chaos.rest.copies import STATE
from nominee.lab.chaos.rest.expectations import expectations_of
from nominee.lab.chaos.rest.nodes import AUTOSCALER
from nominee.lab.chaos.rest.observation import EXPLAINED_MAX, observe, outstanding, with_memory
from nominee.lab.chaos.rest.perpetual import busy_namespaces, writes_elsewhere
from nominee.lab.chaos.rest.scheduling import OTHER_SCHEDULER, SCHEDULER, explanation_path
from nominee.lab.chaos.rest.shapes import shapes_of
from nominee.lab.chaos.rest.state import Expectations
from nominee.lab.chaos.restarting import changed_by_restart
from nominee.lab.chaos.tracing import trace
from nominee.lab.history.invariants.table import OF_NOW, OF_REPORTS
from nominee.lab.history.revision import Revision
from nominee.lab.scenario.acting.base import Phase
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.observing.base import Condition
from nominee.lab.scenario.observing.leader import leading
from nominee.lab.scenario.observing.world import World, watched_kinds
from nominee.lab.scenario.play.cleaning import clean
from nominee.lab.scenario.play.narration import Narrator, Silent
from nominee.lab.scenario.play.runner import Run
from nominee.lab.scenario.result import Outcome, ScenarioResult, Violation
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.states import COMING_UP, ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core

REST_SECONDS_MAX = 30.0
"""The pod garbage collector looks every 20 s, and an owner then removes its finalizer."""
LASTING_SECONDS = 5.0
QUIET_SECONDS = 0.5
"""For so long a cluster must be at rest: a process that has just started acts in this time."""
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_KUBELET: Final = "kubelet"
WATCHED_SECONDS = 12.0
PERIODS_SECONDS = 36.0
"""For so long writes are counted at rest; after the undisturbed run until all periodic work has come once."""
_PERIODS_MAX, _PERIODS_OF_AUTOSCALERS_MAX, _PERIODS_OF_EVENTS_MAX = 2, 4, 10
"""An autoscaler removes several nodes one after another; recorders write events with a limited rate."""
_NO_ERROR = "exit code 0"
_DISTURBING = (Phase.FAULTS, Phase.PROCESSES, Phase.FAILPOINTS)
"""When the steps after which a process may end with an error are undone: a leader loses its lease."""
_ROUNDS_MAX = 4
"""What ends a finding may be new work, after which the cluster must come to rest again."""


class _Steps:
    """A narrator that passes all on, and sets an event when a step of a given name begins.

    `on_step` gets the text of each step.
    """

    def __init__(
        self, narrate: Narrator, events: Mapping[str, anyio.Event], on_step: Callable[[str], None]
    ) -> None:
        self._narrate, self._events, self._on_step = narrate, events, on_step
        self.heading: Callable[[str], None] = narrate.heading
        self.waits: Callable[[str], None] = narrate.waits
        self.saw: Callable[[str], None] = narrate.saw
        self.held: Callable[[str], None] = narrate.held
        self.failed: Callable[[str], None] = narrate.failed

    def act(self, text: str) -> None:
        """Report a step."""
        self._narrate.act(text)
        self._on_step(text)
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
    """Run a scenario with the perturbations of a case, and restore the cluster if nothing failed.

    Without `clean_up` the cluster is new, was started with `first_start`, and is not used again.
    """
    await keep_away(cluster, case)
    perturbing = Perturbing(case, cluster, undisturbed.launches, is_new=not clean_up)
    first = await perturbing.prepare()
    observer, is_observed = ActivityObserver(cluster), not case.perturbations and undisturbed.is_asked
    judged, disturbed = without_now(without_views(scenario, case), case), scenario
    if case.perturbations:
        disturbed = perturbing.scenario(relaxed(judged, case, undisturbed.needed))
    if is_observed:
        await observer.begin()
    began = len(await cluster.history())
    world = World(cluster.client, cluster.clock, watched_kinds(_conditions(disturbed)))
    async with anyio.create_task_group() as tasks:
        await world.open(tasks)
        earlier = Earlier(disturbed, world)
        steps = _Steps(narrate, perturbing.begin_events, earlier.on_step)
        accepts = partial(is_accepted, case=case, accepted_findings=scenario.accepted_findings)
        run = Run(disturbed, cluster, world, steps, accepts)
        async with anyio.create_task_group() as helpers, AsyncExitStack() as stack:
            perturbing.start(helpers)
            if case.perturbations:
                run.stage.waiting.earlier = earlier.observation
                stack.enter_context(world.listening(earlier.on_change))
            if is_observed:
                helpers.start_soon(observer.watch)
            result = await run.play(tasks, first, ())
            await perturbing.finish()
            helpers.cancel_scope.cancel()
        after = await points(cluster)
        lasting, shapes, activity, is_clean = list[int](), dict[str, int](), Activity(), False
        reached = await perturbing.reached(after)
        if is_observed:
            activity = await observer.end(scenario, (await cluster.history())[began:])
        if result.outcome is Outcome.PASSED:
            await move(cluster, case)
        await calm(cluster, case, after)
        expectations = _expectations(scenario, case, undisturbed, result)
        unsettled, work = await _unsettled(scenario, case, cluster, expectations, is_simulated=not clean_up)
        writes = (await cluster.history())[began:]
        if result.outcome is Outcome.PASSED and not unsettled:
            if case.perturbations:
                states = only(judged, undisturbed.lasting, LASTING_SECONDS)
                again = Run(states, cluster, world, narrate, accepts)
                result = await _again(result, run, again, tasks)
            elif is_observed:
                lasting = await _lasting(scenario, run, cluster, world, tasks)
                shapes = shapes_of(await with_memory(cluster, await observe(cluster, expectations)))
            if result.outcome is Outcome.PASSED and not clean_up:
                await cluster.clock.sleep(hang_seconds(case))  # a call may hang while all else rests
                unsettled = await changed_by_restart(cluster, expectations)
        found = (*result.violations, *await violations_at_rest(scenario, case, cluster))
        result = replace(result, violations=tuple(dict.fromkeys(found)))
        if clean_up and result.outcome is Outcome.PASSED and not (found or unsettled):
            is_clean = await _restored(cluster, case, run, scenario)
        tasks.cancel_scope.cancel()
    return Ran(
        result=result,
        trace=trace(writes),
        passes=_passes(after),
        activity=activity,
        reached=reached,
        unsettled=unsettled,
        is_clean=is_clean,
        lasting=tuple(lasting),
        shapes=shapes,
        facts=_facts(scenario, case, writes, result),
        work=work,
    )


async def violations_at_rest(scenario: Scenario, case: Case, cluster: ScenarioCluster) -> Sequence[Violation]:
    """Return the violations at the end; those of now must outlast a call that may still hang."""
    exceptions = without_views(scenario, case).except_invariants
    found = await cluster.violations(exceptions)
    late = hang_seconds(case)
    if late and any(each.invariant in OF_NOW | OF_REPORTS for each in found):
        await cluster.clock.sleep(late)
        found = await cluster.violations(exceptions)
    return found


async def _restored(cluster: ScenarioCluster, case: Case, run: Run, scenario: Scenario) -> bool:
    with suppress(ClusterError, StatusError):
        await move_back(cluster, case)
        await clean(run.stage, scenario)
        return True
    return False


def _facts(scenario: Scenario, case: Case, writes: Sequence[Revision], result: ScenarioResult) -> Facts:
    """Return the facts of the undisturbed run, or of one in which only the rules count."""
    if not case.perturbations:
        return facts_of(writes, result)
    return ends_of(writes, result) if scenario.checks_may_fail else {}


def _passes(after: Points) -> dict[str, dict[str, int]]:
    """Return how often each process has passed each failpoint."""
    return {process: {name: point.hits for name, point in found.items()} for process, found in after.items()}


def _expectations(
    scenario: Scenario, case: Case, undisturbed: Undisturbed, result: ScenarioResult
) -> Expectations:
    """Return the expectations at rest: after all steps, a disturbed run has the undisturbed one's objects.

    Not if a step may fail, since another one may in another run.
    """
    expectations = expectations_of(scenario)
    is_over = case.perturbations and result.outcome is Outcome.PASSED and not scenario.steps_may_fail
    if not is_over:
        return expectations
    return replace(expectations, shapes=undisturbed.shapes, work=undisturbed.work)


def _conditions(scenario: Scenario) -> list[Condition]:
    """Return the conditions of a scenario."""
    found = [background.condition for background in scenario.background]
    return found + [condition for step in scenario.steps for condition in step.action.conditions]


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


async def _again(
    result: ScenarioResult, run: Run, lasting: Run, tasks: anyio.abc.TaskGroup
) -> ScenarioResult:
    """Make the lasting checks again, after the cluster has come to rest; return the result with theirs."""
    lasting.variables.update(run.variables)
    again = await lasting.play(tasks, (), ())
    if again.outcome is Outcome.PASSED:
        return result
    return replace(
        again,
        reason=f"when the cluster had come to rest: {again.reason}",
        seconds=result.seconds + again.seconds,
        steps=(*result.steps, *again.steps),
    )


async def _unsettled(
    scenario: Scenario,
    case: Case,
    cluster: ScenarioCluster,
    expectations: Expectations,
    *,
    is_simulated: bool,
) -> tuple[str, Mapping[str, float]]:
    """Return why the cluster does not come to rest, or which processes ended though nothing was disturbed.

    And the work of the processes at rest.
    """
    found = left_down(await cluster.processes()) if scenario.cluster.restart else ""
    found = found or await rest(cluster, expectations, REST_SECONDS_MAX + hang_seconds(case))
    work: Mapping[str, float] = {}
    if is_simulated and not found:
        seconds = WATCHED_SECONDS if case.perturbations else PERIODS_SECONDS
        found, work = await _restless(cluster, seconds, expectations.work)
        if found and (late := hang_seconds(case)):
            # Until a clock that was set back has caught up, renewals of leases do not count.
            await cluster.clock.sleep(late)
            found, work = await _restless(cluster, seconds, expectations.work)
    is_disturbed = case.perturbations or any(each.action.undone_in in _DISTURBING for each in scenario.steps)
    if not (found or is_disturbed):
        found = ended_by_themselves(await cluster.processes())
    return found, work


async def rest(
    cluster: ScenarioCluster, expectations: Expectations, seconds_max: float = REST_SECONDS_MAX
) -> str:
    """Wait until the cluster is at rest, as a correct one is (lab/chaos/rest); return why it is not."""
    findings = ""
    for _ in range(_ROUNDS_MAX):
        unsettled = await quiet(cluster, seconds_max)
        if unsettled:
            return unsettled
        findings, waited = await outstanding(cluster, expectations)
        if findings or not waited:
            break
    return findings


async def _restless(
    cluster: ScenarioCluster, seconds: float, usual: Mapping[str, float] | None
) -> tuple[str, Mapping[str, float]]:
    """Return the writes and the work that do not end at rest, nor in further periods; and all work."""
    found: Sequence[str] = ()
    work: Mapping[str, float] = {}
    scales = any(each.component == AUTOSCALER for each in await cluster.processes())
    periods = _PERIODS_OF_AUTOSCALERS_MAX if scales else _PERIODS_MAX
    for period in range(1, _PERIODS_OF_EVENTS_MAX + 1):
        began, before, attempts = len(await cluster.history()), cluster.callbacks(), await _attempts(cluster)
        await cluster.clock.sleep(seconds)
        work, writes = work_of(before, cluster.callbacks(), seconds), (await cluster.history())[began:]
        repeated = attempts_at_rest(attempts, await _attempts(cluster), seconds)
        written = rewritten(writes, seconds)
        if written and (namespaces := await _busy_namespaces(cluster)):
            written = rewritten(writes_elsewhere(writes, namespaces), seconds)
        found = [*written, *repeated, *busy(work, usual)]
        if not found or (period >= periods and not has_events(writes)):
            break
    return "; ".join(found), work


async def _busy_namespaces(cluster: ScenarioCluster) -> frozenset[str]:
    """Return the namespaces whose objects ask for work that does not end; none if they cannot be read."""
    with suppress(StatusError, ClusterError):
        return busy_namespaces(await observe(cluster, Expectations()))
    return frozenset()


def ended_by_themselves(processes: Iterable[ProcessState]) -> str:
    """Return the processes that ended with an error; a process that is stopped has none."""
    ended = (
        each for each in processes if each.last_exit.startswith("exit code") and each.last_exit != _NO_ERROR
    )
    return "; ".join(f"{each.name} ended by itself with {each.last_exit}" for each in ended)


def left_down(processes: Iterable[ProcessState]) -> str:
    """Return the processes that crashed and that their supervisor does not start again."""
    found = (each for each in processes if each.state == ChildState.CRASHED)
    return "; ".join(f"{each.name} is left down after {each.last_exit}" for each in found)


async def quiet(cluster: ScenarioCluster, seconds_max: float) -> str:
    """Wait until no pod must change for QUIET_SECONDS; return the reasons that have not ended in time.

    A pod that terminates has its grace period in addition, and one on a node whose kubelet does not run the
    time in which the node stays ready.
    """
    deadlines = Deadlines(cluster.clock.monotonic(), seconds_max)
    since: float | None = None
    while True:
        found, longest = await _unrest(cluster)
        now = cluster.clock.monotonic()
        if found:
            since = None
            if late := deadlines.overdue(found, longest, now):
                return "; ".join(late[:5])
        elif since is None:
            since = now
        elif now - since >= QUIET_SECONDS:
            return ""
        await cluster.clock.sleep(POLL_SECONDS)


async def _unrest(cluster: ScenarioCluster) -> tuple[Sequence[Reason], float]:
    """Return the reasons for unrest, from the API server's own state, and the longest time in addition.

    Processes that are restarted come first.
    """
    processes = await cluster.processes()
    restarting = [Reason(f"{each.name} is {each.state}") for each in processes if each.state in COMING_UP]
    if restarting:
        return restarting, 0.0
    try:
        pods = await cluster.client.list(kinds.POD)
        nodes = await cluster.client.list(kinds.NODE)
    except StatusError as error:
        return [Reason(f"the API server: {error.message}")], 0.0
    silent = await _silent_nodes(cluster, nodes.items, processes)
    unschedulable, on_the_way = await _waiting(cluster)
    found = unrest(
        pods.items,
        nodes.items,
        unschedulable | await _of_no_scheduler(cluster, pods.items, processes),
        cluster.clock.now(),
        on_the_way=on_the_way,
        scheduled=any(each.component == SCHEDULER and each.state == ChildState.READY for each in processes),
        silent=silent,
    )
    return found, max((extra_seconds(pod, silent) for pod in pods.items), default=0.0)


async def _silent_nodes(
    cluster: ScenarioCluster, nodes: Iterable[core.Node], processes: Iterable[ProcessState]
) -> frozenset[str]:
    """Return the nodes that no running kubelet has, if a kubelet does not run.

    All, if one that runs does not answer.
    """
    states = {each.name: each.state for each in processes if each.component == _KUBELET}
    if all(state == ChildState.READY for state in states.values()):
        return frozenset()
    names = frozenset(node.metadata.name for node in nodes)
    running = [name for name, state in states.items() if state == ChildState.READY]
    try:
        served = [node for name in running for node in (await cluster.http_json(name, STATE))["nodes"]]
    except ClusterError:
        return names
    return names.difference(served)


async def _of_no_scheduler(
    cluster: ScenarioCluster, pods: Iterable[core.Pod], processes: Iterable[ProcessState]
) -> frozenset[str]:
    """Return the pods without an attempt whose schedulerName none of the schedulers has: they wait for ever.

    Without an answer none is.
    """
    named = (pod for pod in pods if pod.spec.schedulerName not in ("", _DEFAULT_SCHEDULER))
    untried = [pod for pod in named if not (pod.spec.nodeName or is_tried(pod))][:EXPLAINED_MAX]
    schedulers = [each.name for each in processes if each.component == SCHEDULER]
    found = set[str]()
    try:
        for pod in untried:
            explained = [await cluster.http_json(name, explanation_path(pod)) for name in schedulers]
            if explained and all(each["state"] == OTHER_SCHEDULER for each in explained):
                found.add(str(key_of(pod)))
    except ClusterError:
        return frozenset()
    return frozenset(found)


async def _attempts(cluster: ScenarioCluster) -> dict[str, int]:
    """Return how often the scheduler has tried each pod that waits; nothing without an answer."""
    try:
        queues = await cluster.http_json(await leading(cluster, "scheduler"), "/debug/queue")
    except ClusterError:
        return {}
    waiting = ("active", "backoff", "unschedulable")
    return {str(each["pod"]): int(each["attempts"]) for place in waiting for each in queues[place]}


async def _waiting(cluster: ScenarioCluster) -> tuple[frozenset[str], frozenset[str]]:
    """Return the pods that are unschedulable for the scheduler, and those on the way to a node.

    A plugin that gates a pod, as one whose group lacks pods, leaves no condition (runPreEnqueuePlugins).

    Without an answer no pod is either.
    """
    try:
        queues = await cluster.http_json(await leading(cluster, "scheduler"), "/debug/queue")
    except ClusterError:
        return frozenset(), frozenset()
    on_the_way = (*queues["binding"], *queues["waiting_on_permit"])
    unschedulable = frozenset(str(each["pod"]) for each in (*queues["unschedulable"], *queues["gated"]))
    return unschedulable, frozenset(str(each["pod"]) for each in on_the_way)
