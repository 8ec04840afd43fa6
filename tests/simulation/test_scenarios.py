"""Scenarios in a simulation, and the command that runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.scenario.run import scenario as scenario_command
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.worker import simulated
from nominee.lab.history.history_file import HistoryReader
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.play.simulation_running import SimulationSettings, simulate_seeds
from nominee.lab.scenario.result import Outcome
from nominee.machinery.api import kinds
from nominee.simulation.simulation import Simulation

ROOT = Path(__file__).parents[2]
STORY = ROOT / "scenarios" / "kep-5278-story-2-restart.yaml"
HEAD = "apiVersion: scenario.nominee.dev/v1alpha1\nkind: Scenario\n"
NEVER_RUNS = f"""{HEAD}metadata: {{name: never-runs}}
spec:
  cluster: {{nodes: 1, without: [autoscaler, cloud]}}
  steps:
  - apply:
    - apiVersion: v1
      kind: Pod
      metadata: {{name: p}}
      spec: {{containers: [{{name: c, image: app, resources: {{requests: {{cpu: "99"}}}}}}]}}
  - expect: {{eventually: {{object: {{kind: Pod, name: p, condition: Ready=True}}}}, seconds: 20}}
"""
PROGRAM = f"""{HEAD}metadata: {{name: foreign}}
spec:
  cluster:
    nodes: 1
    components: {{scheduler: {{command: [kube-scheduler]}}}}
  steps:
  - wait: {{object: {{kind: Pod, name: p, condition: Ready=True}}}}
"""
RESTARTS = f"""{HEAD}metadata: {{name: restarts}}
spec:
  cluster: {{nodes: 1, without: [autoscaler, cloud]}}
  steps:
  - failpoint: {{component: scheduler, name: scheduler.bind.before, action: 1*crash}}
  - apply:
    - apiVersion: v1
      kind: Pod
      metadata: {{name: p}}
      spec: {{containers: [{{name: c, image: app}}]}}
  - expect: {{eventually: {{object: {{kind: Pod, name: p, jsonPath: {{.status.phase: Running}}}}}}}}
  - expect: {{eventually: {{component: {{name: scheduler, state: ready, restarts: 1}}}}}}
  - pause: kubelet-0
  - fault: {{component: scheduler, to: apiserver, action: cut}}
  - apply:
    - apiVersion: v1
      kind: Pod
      metadata: {{name: q}}
      spec: {{containers: [{{name: c, image: app}}]}}
  - expect: {{never: {{object: {{kind: Pod, name: q, jsonPath: {{.spec.nodeName: node-0}}}}}}, seconds: 5}}
  - fault: {{component: scheduler, action: "off"}}
  - expect: {{eventually: {{object: {{kind: Pod, name: q, jsonPath: {{.spec.nodeName: node-0}}}}}}}}
  - resume: kubelet-0
  - expect: {{eventually: {{object: {{kind: Pod, name: q, jsonPath: {{.status.phase: Running}}}}}}}}
"""
RACE = f"""{HEAD}metadata: {{name: race}}
spec:
  cluster: {{nodes: 1, without: [autoscaler, cloud]}}
  steps:
  - wait: {{object: {{kind: Node, condition: Ready=True, jsonPath: {{.spec.taints: null}}}}}}
  - expect: {{always: {{object: {{kind: Node}}}}, seconds: 1}}
  - patch: {{kind: Node, name: node-0, patch: {{spec: {{unschedulable: true}}}}}}
  - apply:
    - apiVersion: v1
      kind: Pod
      metadata: {{name: p}}
      spec: {{containers: [{{name: c, image: app}}]}}
  - expect:
      eventually: {{object: {{kind: Pod, name: p, condition: PodScheduled=False/Unschedulable}}}}
      seconds: 5
"""
"""The scheduler has to see that the node is cordoned before it sees the pod."""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def only(path: Path) -> Scenario:
    """Return the first scenario of a file."""
    return read_file(path)[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_story_of_a_kep_holds(seed: int) -> None:
    simulation = Simulation(seed)
    result = simulate(only(STORY), seed, simulation=simulation)
    assert result.outcome is Outcome.PASSED, result.reason
    assert simulation.loop.problems == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for stem in ("chaos", "workloads") for path in sorted((ROOT / "scenarios").glob(f"{stem}-*.yaml"))],
    ids=lambda path: path.stem,
)
def test_the_scenarios_for_explorations_hold_undisturbed(path: Path) -> None:
    for scenario in read_file(path):
        simulation = Simulation(3)
        result = simulate(scenario, 3, simulation=simulation)
        assert result.outcome is Outcome.PASSED, f"{scenario.name}: {result.reason}"
        assert simulation.loop.problems == []


def digest(seed: int) -> str:
    """Play the story, in which the scheduler is killed and started; return the hash of the history."""
    simulation = Simulation(seed)
    assert simulate(only(STORY), seed, simulation=simulation).held
    return simulation.store.digest()


def test_a_run_with_a_crash_and_a_restart_is_repeatable() -> None:
    assert digest(5) == digest(5)


def test_crashes_pauses_and_faults(tmp_path: Path) -> None:
    result = simulate(only(write(tmp_path, RESTARTS)), 1)
    assert result.outcome is Outcome.PASSED, result.reason


@pytest.mark.processes
def test_a_failure_names_the_seed_and_the_command(tmp_path: Path) -> None:
    path = write(tmp_path, NEVER_RUNS)
    arguments = ["run", "--simulate", "--seeds", "4-5", "--jobs", "2", "-o", "json", str(path)]
    arguments += ["--dir", str(tmp_path / "runs")]
    ran = CliRunner().invoke(scenario_command, arguments)
    assert ran.exit_code == 1
    (result,) = json.loads(ran.stdout)["results"]
    assert result["outcome"] == "failed"
    assert result["reason"].startswith("seed 4: step 2")
    assert result["seeds"] == "0 of 2 seeds held"
    assert f"--simulate --seed 4 {path} --name never-runs" in result["reproduce"]
    history = list(HistoryReader(Path(result["directory"]) / "history.gz"))
    assert [each.name for each in history if each.kind is kinds.POD and each.previous_value is None] == ["p"]
    assert "scheduler] " in (Path(result["directory"]) / "simulation.log").read_text(encoding="utf-8")


def test_a_foreign_program_is_skipped_with_the_reason(tmp_path: Path) -> None:
    result = simulate(only(write(tmp_path, PROGRAM)), 1)
    assert result.outcome is Outcome.SKIPPED
    assert "scheduler: programs that are not Nominee's cannot be simulated" in result.reason


def test_several_processes_of_etcd_are_an_error_of_an_exploration(tmp_path: Path) -> None:
    several = only(
        write(tmp_path, PROGRAM.replace("scheduler: {command: [kube-scheduler]}", "etcd: {replicas: 3}"))
    )
    answer = simulated(several, Case(), Undisturbed(), Simulation(1), verbose=False)
    assert answer.error == "several processes of etcd cannot be simulated"


def outcomes(path: Path, late_watches: float) -> list[str]:
    """Return the outcomes of seeds 13 to 16."""
    found: list[str] = []
    settings = SimulationSettings(seeds=range(13, 17), late_watches=late_watches)
    simulate_seeds(path, lambda run: found.append(run["outcome"]), [only(path)], settings.seeds, settings)
    return found


def test_late_watches_show_that_a_scenario_depends_on_what_a_process_sees_first(tmp_path: Path) -> None:
    path = write(tmp_path, RACE)
    assert outcomes(path, 0.0) == ["passed"] * 4
    late = outcomes(path, 0.5)
    assert set(late) == {"passed", "failed"}
    arguments = ["run", str(path), "--simulate", "--late-watches", "0.5", "--dir", str(tmp_path / "kept")]
    found = CliRunner().invoke(scenario_command, [*arguments, "--seed", str(late.index("failed") + 13)])
    assert found.exit_code == 1, found.output
    assert "--name race --late-watches 0.5\n" in found.output


@pytest.mark.parametrize("share", ["1.5", "-0.1", "x"])
def test_a_share_of_late_watches_is_between_0_and_1(share: str) -> None:
    answer = CliRunner().invoke(scenario_command, ["run", str(STORY), "--simulate", "--late-watches", share])
    assert answer.exit_code == 2
    assert "--late-watches" in answer.output


def test_only_watches_of_a_simulation_can_be_late() -> None:
    answer = CliRunner().invoke(scenario_command, ["run", str(STORY), "--late-watches", "0.5"])
    assert answer.exit_code == 2
    assert "--seed, --seeds and --late-watches are for --simulate" in answer.output
