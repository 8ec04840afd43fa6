"""An accepted violation does not end a run: what comes after it is looked at as well."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.result import Outcome
from nominee.simulation.simulation import Simulation

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: accepted}
spec:
  cluster: {nodes: 0, without: [autoscaler, cloud, scheduler]}
  chaos:
    acceptedFindings:
    - {case: "*", observation: "OBSERVATION: observed: *", reason: it is known, link: a-link}
  steps:
    - apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
    - wait: {object: {kind: ConfigMap, name: first}}
    - apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: second}}
  expect:
    - name: there is no first one
      never: {object: {kind: ConfigMap, name: first}}
"""


@pytest.mark.parametrize(
    ("observation", "outcome", "steps"),
    [("there is no first one", Outcome.PASSED, 3), ("there is no second one", Outcome.FAILED, 0)],
    ids=["accepted", "another is accepted"],
)
def test_a_run_goes_on_after_an_accepted_violation(observation: str, outcome: Outcome, steps: int) -> None:
    (scenario,) = read_text(SCENARIO.replace("OBSERVATION", observation), "accepted.yaml")
    answer = simulated(scenario, Case(), Undisturbed(), Simulation(1), verbose=False)
    result = answer.scenario_result
    assert not answer.error
    assert [each.invariant for each in result.violations] == ["there is no first one"]
    assert result.outcome is outcome
    assert sum(step.outcome is Outcome.PASSED for step in result.steps) == steps
