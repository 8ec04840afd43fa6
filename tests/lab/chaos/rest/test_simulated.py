"""The rules on a whole cluster, in a simulation: a mistake that is put into a component is found at rest."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue
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


def unsettled() -> str:
    """Return why the scenario's cluster does not come to rest after the undisturbed run."""
    (scenario,) = read_text(SCENARIO, "room.yaml")
    answer = simulated(scenario, Case(), Undisturbed(), Simulation(1), verbose=False)
    assert not answer.error
    return answer.unsettled


def test_the_cluster_comes_to_rest() -> None:
    assert unsettled() == ""


def test_a_lost_wakeup_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrioritySchedulingQueue, "move_all", lambda *_args, **_more: None)
    assert unsettled() == "pod default/b waits in the state Unschedulable, and fits on node-0"
