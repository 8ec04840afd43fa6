"""The rules on a whole cluster, in a simulation: a mistake that is put into a component is found at rest."""

from __future__ import annotations

import pytest

from nominee.apiserver.cache.kind_cache import KindCache, Transition
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.machinery.api import kinds
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.loop.binding import BindingCycles
from nominee.simulation.simulation import Simulation

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: room}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud], components: {kubelet: {args: ["--node-cpu=2"]}}}
  steps:
    - apply:
        apiVersion: v1
        kind: Pod
        metadata: {name: "a"}
        spec: &spec
          terminationGracePeriodSeconds: 0
          containers: [{name: c, image: app, resources: {requests: {cpu: "2"}}}]
    - wait: {object: {kind: Pod, name: a, condition: Ready=True}}
    - apply: {apiVersion: v1, kind: Pod, metadata: {name: "b"}, spec: *spec}
    - wait: {object: {kind: Pod, name: b, condition: PodScheduled=False}}
    - delete: {kind: Pod, name: a}
    - wait: {object: {kind: Pod, name: a, exists: false}}
"""


PAUSED = """    - pause: kubelet
    - delete: {kind: Pod, name: b, gracePeriodSeconds: 0}
"""


def run(case: str = "", undisturbed: Undisturbed | None = None, *, steps: str = "") -> CaseAnswer:
    """Run the scenario with a case, and with further steps."""
    (scenario,) = read_text(SCENARIO + steps, "room.yaml")
    parsed = Case.parse(case) if case else Case()
    answer = simulated(scenario, parsed, undisturbed or Undisturbed(), Simulation(1), verbose=False)
    assert not answer.error
    return answer


def unsettled() -> str:
    """Return why the scenario's cluster does not come to rest after the undisturbed run."""
    return run().unsettled


def test_the_cluster_comes_to_rest() -> None:
    assert unsettled() == ""


def test_a_process_that_stays_paused_forgets_nothing() -> None:
    assert run(steps=PAUSED).unsettled == ""


@pytest.mark.slow  # 10 to 20 s of processor time
def test_a_lost_wakeup_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrioritySchedulingQueue, "move_all", lambda *_args, **_more: None)
    assert unsettled() == "pod default/b waits in the state Unschedulable, and fits on node-0"


@pytest.mark.slow  # 10 to 20 s of processor time
def test_a_watch_that_leaves_out_a_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fan_out = WatchCache._fan_out

    def of_some(self: WatchCache, cache: KindCache, transition: Transition) -> None:
        if transition.previous is None or cache.kind is not kinds.NODE:
            fan_out(self, cache, transition)

    monkeypatch.setattr(WatchCache, "_fan_out", of_some)
    violations = run().scenario_result.violations
    assert "reads-are-whole" in {violation.invariant for violation in violations}


def test_a_condition_that_only_the_disturbed_run_leaves_is_found() -> None:
    before = run()
    assert any("a pod in default with" in shape and "Ready=True" in shape for shape in before.shapes)
    expected = Undisturbed(shapes={**before.shapes, "a pod in default with (Left=True)": 1})
    case = "scheduler:scheduler.bind.after=crash"
    assert run(case, Undisturbed(shapes=before.shapes)).unsettled == ""
    assert run(case, expected).unsettled == (
        "a pod in default with (Left=True) is there 0 times, and once after the undisturbed run"
    )


def test_an_error_that_a_process_did_not_foresee_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = BindingCycles._drive

    async def fails_once(self: BindingCycles, attempt: Attempt) -> Status | None:
        monkeypatch.setattr(BindingCycles, "_drive", drive)
        raise KeyError("unforeseen")

    monkeypatch.setattr(BindingCycles, "_drive", fails_once)
    found = [each for each in run().scenario_result.violations if each.invariant == "errors-are-handled"]
    assert "KeyError: 'unforeseen'" in found[0].message
