"""Perturbations before, at and beside the steps of a scenario, on a cluster that records its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import anyio
import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import (
    CRASHES,
    CUT_SECONDS,
    HOLD_SECONDS,
    JUMP_SECONDS,
    SILENCE_SECONDS,
)
from nominee.lab.chaos.cases.tolerance import Relaxed
from nominee.lab.chaos.crashing import Crashes
from nominee.lab.chaos.perturbing import RECONNECT_SECONDS, Perturbing, calm, first_start
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.steps.faults.clock import ShiftClock
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.faults.fault import InjectFault
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.processes.start import Start
from nominee.localcluster.cluster import ClusterError, FaultState, ProcessState
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.runtime.faults.call_faults import RuleState
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass
class NotedCluster:
    """Notes faults and clocks; `fired`: how often faults of calls about pods acted, by method and action."""

    clock: FakeClock = field(default_factory=FakeClock)
    noted: list[tuple[str, ...]] = field(default_factory=list)
    fired: Mapping[tuple[str, str], int] = field(default_factory=dict)

    async def processes(self) -> Sequence[ProcessState]:
        return [ProcessState(name="scheduler", component="scheduler", state="ready")]

    async def failpoints(self, component: str) -> Sequence[PointState]:
        return []

    async def inject_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        self.noted.append((component, action, to, method, kind))

    async def call_faults(self, component: str) -> FaultState:
        rules = [
            RuleState("apiserver", method, "pods", action, fired, 0)
            for (method, action), fired in self.fired.items()
        ]
        return FaultState(rules=rules, calls=[])

    async def shift_clock(self, component: str, offset_seconds: float) -> None:
        self.noted.append((component, f"{offset_seconds:+g}"))


def perturbing(
    case: str, cluster: NotedCluster, launches: Mapping[str, int] | None = None, *, is_new: bool = True
) -> Perturbing:
    return Perturbing(Case.parse(case), cast("ScenarioCluster", cluster), launches or {}, is_new=is_new)


@pytest.mark.parametrize(
    ("case", "seconds", "ends"),
    [
        ("scheduler:pods=stale", HOLD_SECONDS, [("off", "*", "pods")]),
        ("scheduler:pods=relist", HOLD_SECONDS, [("1*relist", "*", "pods"), ("off", "*", "pods")]),
        ("scheduler:pods=reconnect", HOLD_SECONDS, [("1*cut", "Watch", "pods"), ("off", "Watch", "pods")]),
        ("scheduler:pods=silent", SILENCE_SECONDS, [("1*cut", "Watch", "pods"), ("off", "Watch", "pods")]),
        # "off" would remove the faults of single calls, too.
        ("scheduler:apiserver=cut", CUT_SECONDS, [("1*off", "*", "*")]),
    ],
)
async def test_what_is_held_lasts_as_long_as_it_says_also_if_the_scenario_ends_before(
    case: str, seconds: float, ends: list[tuple[str, str, str]]
) -> None:
    cluster = NotedCluster()
    subject = perturbing(case, cluster)
    finished = anyio.Event()

    async def finish() -> None:
        await subject.finish()
        finished.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            subject.start(tasks)
            subject.begin_events[case].set()
            await cluster.clock.wait_for_sleepers()
            tasks.start_soon(finish)
            await cluster.clock.advance(seconds - 0.1)
            assert (cluster.noted, finished.is_set()) == ([], False)
            await cluster.clock.advance(0.1)
            if len(ends) > 1:
                await cluster.clock.wait_for_sleepers()
                await cluster.clock.advance(RECONNECT_SECONDS)
            await finished.wait()
    # Only this view ends: another one of the same process goes on.
    assert cluster.noted == [
        ("scheduler", action, "apiserver", method, kind) for action, method, kind in ends
    ]


async def test_a_view_that_has_not_begun_is_not_waited_for() -> None:
    cluster = NotedCluster()
    subject = perturbing("scheduler:pods=stale", cluster)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            subject.start(tasks)
            await subject.finish()
            tasks.cancel_scope.cancel()
    assert not await subject.reached({})


def step(action: Apply | Start) -> Step:
    return Step(action=action, verb=action.verb, line=1)


SCENARIO = Scenario(
    name="s",
    steps=(
        step(Apply(manifests=())),
        step(Start(component="autoscaler")),
        step(Apply(manifests=())),
    ),
)
CASE = (
    "autoscaler:a.x=crash@2+autoscaler:apiserver.Patch.nodes=hang+scheduler:s.x=error"
    "+scheduler:clock=behind@3+scheduler:apiserver.Bind.pods=lose-response@2"
)


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_process_that_a_step_starts_is_disturbed_from_there_on(is_new: bool) -> None:
    subject = perturbing(CASE, NotedCluster(), {"autoscaler": 2}, is_new=is_new)
    assert list(await subject.prepare()) == [
        ArmFailpoint(component="scheduler", name="s.x", action="1*error(503)"),
        InjectFault(
            component="scheduler", to="apiserver", method="Bind", kind="pods", action="1*off->1*cut-response"
        ),
    ]
    found = subject.scenario(Relaxed(SCENARIO, (1, 2, 3)))
    armed = ArmFailpoint(component="autoscaler", name="a.x", action="1*off->1*crash")
    assert [each.action for each in found.steps] == [
        Apply(manifests=()),
        Start(component="autoscaler"),
        InjectFault(
            component="autoscaler", to="apiserver", method="Patch", kind="nodes", action="1*drop-request"
        ),
        *([] if is_new else [armed]),
        ShiftClock(component="scheduler", offset_seconds=-JUMP_SECONDS),
        Apply(manifests=()),
    ]


def test_a_new_cluster_has_the_failpoints_in_the_options_of_the_first_start() -> None:
    own = ClusterOptions(components={"autoscaler": ComponentOptions(failpoints={"a.own": "pause"})})
    options = first_start(own, Case.parse(CASE), {"autoscaler": 2})
    assert options.components["autoscaler"].failpoints == {"a.own": "pause", "a.x": "1*off->1*crash"}
    assert "scheduler" not in options.components


@pytest.mark.parametrize(
    ("fired", "reached"),
    [
        ({}, False),
        ({("Bind", "1*cut"): 0}, False),
        ({("Patch", "1*cut"): 1}, False),
        ({("Bind", "1*cut"): 1}, True),
    ],
)
async def test_a_fault_of_a_call_is_reached_when_it_has_acted(
    fired: Mapping[tuple[str, str], int], reached: bool
) -> None:
    subject = perturbing("scheduler:apiserver.Bind.pods=lose-request", NotedCluster(fired=fired))
    await subject.prepare()
    assert await subject.reached({}) is reached


async def test_everything_is_undone_at_the_end() -> None:
    cluster = NotedCluster()
    case = Case.parse("scheduler:apiserver.Bind.pods=hang+scheduler:clock=ahead")
    await calm(cast("ScenarioCluster", cluster), case, {"scheduler": {}, "kubelet-0": {}})
    assert cluster.noted == [
        ("scheduler", "off", "*", "*", "*"),
        ("kubelet-0", "off", "*", "*", "*"),
        ("scheduler", "+0"),
    ]


@dataclass
class SupervisedCluster(NotedCluster):
    """Has one process, which is ready again when it is looked at after its death."""

    process: ProcessState = field(
        default_factory=lambda: ProcessState(name="scheduler", component="scheduler", state="ready")
    )
    kills: int = 0
    is_dead: bool = False

    async def processes(self) -> Sequence[ProcessState]:
        if self.is_dead:
            self.process = replace(self.process, restarts=self.process.restarts + 1)
            self.is_dead = False
        return [self.process]

    async def crash(self, component: str) -> None:
        assert not self.is_dead, f"{component} is killed twice"
        self.is_dead = True
        self.kills += 1


@pytest.mark.parametrize(("state", "kills"), [("ready", CRASHES), ("down", 0)])
async def test_a_crash_loop_kills_the_process_five_times(state: str, kills: int) -> None:
    cluster = SupervisedCluster()
    cluster.process = replace(cluster.process, state=state)
    subject = perturbing("scheduler:process=crash-loop", cluster)
    await subject.prepare()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            subject.start(tasks)
            subject.begin_events["scheduler:process=crash-loop"].set()
            await subject.finish()
            tasks.cancel_scope.cancel()
    assert cluster.kills == kills
    assert await subject.reached({}) is (kills == CRASHES)


@pytest.mark.parametrize(
    ("has_supervisor", "state", "problem"),
    [
        (False, "ready", "scheduler is not started again in a cluster with `restart: never`"),
        (True, "down", "scheduler is no process that runs"),
    ],
)
async def test_a_process_that_cannot_be_killed_again_and_again_is_an_error(
    has_supervisor: bool, state: str, problem: str
) -> None:
    cluster = SupervisedCluster()
    cluster.process = replace(cluster.process, state=state)
    begin = Crashes(component="scheduler", has_supervisor=has_supervisor, over=None)
    with pytest.raises(ClusterError) as raised:
        await begin.perform(cast("Stage", SimpleNamespace(cluster=cluster)))
    assert str(raised.value) == problem
