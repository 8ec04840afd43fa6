"""Scenarios with many seeds, as a test of another project plays them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.testing import Simulation, simulate
from nominee.testing.simulations import BrokenSeed, SimulationResult

pytestmark = pytest.mark.processes
HOLDS = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: a-pod-is-bound}
spec:
  cluster: {nodes: 2}
  steps:
  - apply:
      apiVersion: v1
      kind: Pod
      metadata: {name: a}
      spec: {containers: [{name: c, image: pause}]}
  - wait: {object: {kind: pod, name: a, condition: PodScheduled=True}}
"""
# Which of two equal nodes it is depends on the seed.
DEPENDS = f"""{HOLDS.replace("a-pod-is-bound", "on-node-0")}
  - expect: {{now: {{object: {{kind: pod, name: a, jsonPath: {{.spec.nodeName: node-0}}}}}}}}
"""


def test_a_scenario_that_holds() -> None:
    result = simulate(HOLDS, range(1, 3), jobs=1, emulated_version="1.36")
    assert result.held, str(result)
    assert (result.runs, result.broken) == (2, ())
    assert str(result) == "a-pod-is-bound: passed: 2 seeds"


def test_the_broken_seeds_and_their_commands(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(f"{HOLDS}---{DEPENDS}")
    result = simulate(
        file, range(1, 9), name="on-node-0", feature_gates={"": {"NominatedNodeNameForExpectation": True}}
    )
    assert not result.held
    assert 0 < len(result.broken) < result.runs == 8
    first = result.broken[0]
    assert "spec.nodeName = node-1" in first.message
    assert first.command == (
        f"nominee scenario run --simulate --seed {first.seed} {file} --name on-node-0 "
        "--feature-gates NominatedNodeNameForExpectation=true"
    )
    assert [each.seed for each in result.broken] == sorted(each.seed for each in result.broken)
    assert str(result).startswith(f"on-node-0: {8 - len(result.broken)} of 8 seeds held\nseed {first.seed}: ")
    assert str(first).endswith(f"\n    {first.command}")
    assert str(BrokenSeed(3, "no", "")) == "seed 3: no"


def test_what_cannot_be_played(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(f"{HOLDS}---{DEPENDS}")
    with pytest.raises(ValueError, match=r"name one of the scenarios a-pod-is-bound, on-node-0$"):
        simulate(tmp_path / "two.yaml")
    with pytest.raises(ValueError, match="on-node-0, not other"):
        simulate(str(tmp_path / "two.yaml"), name="other")
    with pytest.raises(ValueError, match="there are no seeds"):
        simulate(HOLDS, range(0))
    with pytest.raises(InvalidScenarioError, match="stepps"):
        simulate(HOLDS.replace("steps:", "stepps:"))


def test_a_simulation_by_itself() -> None:
    async def main() -> float:
        return simulation.clock.monotonic()

    simulation = Simulation(seed=7)
    assert simulation.run(main) >= 0.0


def test_the_text_of_a_result_begins_with_the_seeds_that_held() -> None:
    found = ScenarioResult(scenario="s", outcome=Outcome.FAILED, reason="step 1")
    result = SimulationResult("s", 3, (BrokenSeed(1, "step 1", "nominee scenario run"),), found)
    assert repr(result) == str(result) == "s: 2 of 3 seeds held\nseed 1: step 1\n    nominee scenario run"
