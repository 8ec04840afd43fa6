"""What an undisturbed run did, of processes that a step starts, too; in simulations."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.lab.chaos.activity import ActivityObserver
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope
from nominee.lab.chaos.cases.observations import Activity, Undisturbed
from nominee.lab.chaos.cases.verdict import Verdict
from nominee.lab.chaos.clusters import SimulatedClusters
from nominee.lab.chaos.explorer import ExplorationSettings, Explorer
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.simulation.simulation import Simulation

TEXT = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: late}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers], components: {scheduler: {stopped: true}}}
  steps:
  - apply:
    - {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: app}]}}
  - start: scheduler
  - expect: {eventually: {object: {kind: Pod, name: p, condition: Ready=True}}}
  - delete: {kind: Pod, name: p}
  - expect: {eventually: {object: {kind: Pod, name: p, count: 0}}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    file = tmp_path / "late.yaml"
    file.write_text(TEXT)
    (found,) = read_file(file)
    return found


def test_a_process_that_a_step_starts_has_failpoints_and_calls(scenario: Scenario) -> None:
    answer = simulated(scenario, Case(), Undisturbed(), Simulation(1), verbose=False)
    activity = answer.observed_activity
    assert activity.launches == {"scheduler": 2}
    assert activity.hits["scheduler"]["scheduler.bind.before"] == 1
    assert activity.calls["kubelet-0"]["apiserver.Watch.pods"] >= 1
    assert activity.calls["apiserver"]["etcd.Txn.pods"] > 1
    assert "pods" in activity.kinds


@pytest.mark.parametrize(
    "case",
    [
        "scheduler:scheduler.bind.before=crash",
        "scheduler:pods=stale@4",
        "kubelet-0:apiserver.Delete.pods=hang",
        "kubelet-0:apiserver.Delete.pods=lose-responses",
        "kubelet-0:apiserver.Patch.pods=conflict",
        "kubelet-0:apiserver=cut@4+kubelet-0:apiserver.Delete.pods=lose-request",
        "scheduler:nodes=relist@3",
    ],
)
def test_its_cases_take_place(scenario: Scenario, tmp_path: Path, case: str) -> None:
    settings = ExplorationSettings(
        scope=Scope(seed=1), budget_seconds=60.0, case=Case.parse(case), simulate=True
    )
    report = Explorer(scenario, SimulatedClusters(scenario, tmp_path), settings, lambda _: None).run()
    assert [each.verdict for each in report.results] == [Verdict.HELD], report.results


def test_the_history_is_the_same_without_an_observer(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed, plain = Simulation(3), Simulation(3)
    simulated(scenario, Case(), Undisturbed(), observed, verbose=False)

    async def nothing(*_: object) -> Activity:
        return Activity()

    for name in ("begin", "watch", "end"):
        monkeypatch.setattr(ActivityObserver, name, nothing)
    simulated(scenario, Case(), Undisturbed(), plain, verbose=False)
    assert observed.store.digest() == plain.store.digest()
