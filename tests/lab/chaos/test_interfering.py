"""Another client replaces or changes a pod while a process is at work on it."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope, neighbours, singles
from nominee.lab.chaos.cases.observations import Activity, Undisturbed
from nominee.lab.chaos.cases.perturbations import Action, AtFailpoint
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.simulation.simulation import Simulation

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: one-pod}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
    - apply:
        apiVersion: v1
        kind: Pod
        metadata: {name: "a"}
        spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: app}]}
    - expect: {eventually: {object: {kind: Pod, name: a, condition: Ready=True}}}
"""


def _run(case: str) -> CaseAnswer:
    (scenario,) = read_text(SCENARIO, "one-pod.yaml")
    answer = simulated(scenario, Case.parse(case), Undisturbed(), Simulation(1), verbose=False)
    assert not answer.error
    return answer


def _changes(answer: CaseAnswer) -> list[str]:
    return [change for write in answer.trace if write.subject == "Pod default/a" for change in write.changes]


@pytest.mark.parametrize("failpoint", ["scheduler:scheduler.bind.before", "kubelet-0:kubelet.start.before"])
def test_a_pod_is_replaced_while_a_task_waits(failpoint: str) -> None:
    answer = _run(f"{failpoint}=recreate")
    assert answer.reached
    assert answer.all_held
    changes = _changes(answer)
    assert [change for change in changes if change in ("created", "deleted")] == [
        "created",
        "deleted",
        "created",
    ]


def test_a_pod_is_changed_and_changed_back_while_a_task_waits() -> None:
    answer = _run("scheduler:scheduler.bind.before=touch")
    assert answer.reached
    assert answer.all_held
    changes = _changes(answer)
    assert "deleted" not in changes
    assert [change for change in changes if "metadata.labels" in change] == [
        "+metadata.labels",
        "-metadata.labels",
    ]


def test_only_tasks_that_are_at_work_on_a_pod_are_disturbed() -> None:
    activity = Activity(hits={"kubelet-0": {"kubelet.start.before": 1, "kubelet.lease.before": 1}})
    scope = Scope(actions=(Action.RECREATE, Action.DELAY), seed=1)
    assert {str(case) for case in singles(activity, scope)} == {
        "kubelet-0:kubelet.start.before=recreate",
        "kubelet-0:kubelet.start.before=delay",
        "kubelet-0:kubelet.lease.before=delay",
    }
    lease = AtFailpoint("kubelet-0", "kubelet.lease.before", Action.DELAY)
    assert list(neighbours(lease, activity, scope)) == []


def test_the_disturbance_is_a_sentence() -> None:
    assert Case.parse("scheduler:scheduler.bind.before=recreate@2").describe() == (
        "scheduler waits, and another client meanwhile replaces the pod, at hit 2 of scheduler.bind.before"
    )
