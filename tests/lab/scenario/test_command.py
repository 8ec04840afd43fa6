"""`nominee scenario` as a user calls it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lab.scenario.test_reading import FOLDER
from tests.lab.scenario.test_runner import TWO_SCHEDULERS
from tests.nominee.test_cli import nominee
from tests.support.patience import PATIENCE_SECONDS

_SMALL = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: small, title: a pod runs, section: none}
spec:
  cluster: {nodes: 1, insecure: true, without: [autoscaler, cloud]}
  steps:
  - apply: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
  - expect: {eventually: {object: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}}
"""
_MISSING = """
---
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: other-scheduler}
spec:
  cluster: {components: {scheduler: {command: [no-such-scheduler, "--kubeconfig={kubeconfig}"]}}}
  steps: [kill: scheduler]
"""


def test_validate_reports_mistakes_and_counts_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    assert nominee("scenario", "validate", str(file)).stdout == "valid scenarios: 1\n"
    file.write_text(_SMALL.replace("nodes:", "node:"))
    answer = nominee("scenario", "validate", str(file))
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"{file}:5: spec.cluster.node: unknown field; did you mean nodes")
    assert nominee("scenario", "run", str(file)).returncode == 2


def test_the_schema_is_printed() -> None:
    assert json.loads(nominee("scenario", "schema").stdout)["title"] == "Nominee scenario"


def test_a_scenario_is_skipped_without_its_program(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL + _MISSING)
    answer = nominee("scenario", "run", "--name", "other-scheduler", str(file))
    assert answer.returncode == 0, answer.stderr
    assert "other-scheduler is skipped: the program no-such-scheduler is not installed" in answer.stdout


def test_a_directory_with_files_is_neither_used_nor_removed(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "notes.txt").write_text("mine")
    answer = nominee("scenario", "run", "--dir", str(tmp_path), str(file))
    assert answer.returncode == 2
    assert f"--dir: {tmp_path / 'small'} has files; remove it, or give another directory" in answer.stderr
    assert (tmp_path / "small" / "notes.txt").read_text() == "mine"


@pytest.mark.slow
def test_a_summary_of_several_seeds_counts_their_checks(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    answer = nominee("scenario", "run", "--simulate", "--seeds", "1-3", "--jobs", "1", str(file))
    assert answer.returncode == 0, answer.stderr
    *_, last, seeds = answer.stdout.splitlines()
    assert seeds == "3 of 3 seeds held"
    found = re.fullmatch(r"1 of 1 scenarios passed: 3 checks held in (.*) simulated s", last)
    assert found is not None, last
    assert float(found[1]) > 0


def test_a_failpoint_is_armed_before_the_first_step(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL.replace("Running}", "Running}}}, seconds: 5}").removesuffix("}}}\n") + "\n")
    option = "scheduler=scheduler.bind.before=error(500)"
    answer = nominee("scenario", "run", "--simulate", "--failpoints", option, "-o", "json", str(file))
    assert answer.returncode == 1, answer.stderr
    (result,) = json.loads(answer.stdout)["results"]
    assert "observed: pod default/a: .status.phase = Pending" in result["reason"]
    assert "> failpoint scheduler.bind.before is error(500)" in answer.stderr
    assert shlex.split(result["reproduce"])[-2:] == ["--failpoints", option]


@pytest.mark.slow
def test_what_cannot_be_played_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    words = ("scenario", "run", "--simulate", "--failpoints", "cloud=cloud.increase.before=crash", str(file))
    answer = nominee(*words)
    assert answer.returncode == 2
    assert "small could not be played: there is no process cloud" in answer.stdout


@pytest.mark.slow
def test_interrupted_simulations_end_at_once_and_leave_nothing(tmp_path: Path) -> None:
    file, temporary = tmp_path / "small.yaml", tmp_path / "temporary"
    file.write_text(_SMALL, encoding="utf-8")
    temporary.mkdir()
    words = ["scenario", "run", "--simulate", "--seeds", "1-5000", str(file)]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "nominee.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.read(1)  # the first runs have ended
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert list(temporary.iterdir()) == []


def test_a_scenario_holds_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    answer = nominee("scenario", "run", "-o", "junit", "--dir", str(tmp_path / "d"), str(file))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    suite = ElementTree.fromstring(answer.stdout)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    assert "pod a is bound to node-0" in answer.stderr
    assert not (tmp_path / "d").exists()


_PROGRAMS = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: programs}
spec:
  cluster:
    nodes: 1
    insecure: true
    without: [autoscaler, cloud, controllers]
    components:
      other: {command: [sh, -c, "test -f {kubeconfig} && touch {dir}/started && exec sleep 1000"]}
      failing: {command: [sh, -c, "exit 3"], stopped: true}
  steps:
  - expect: {now: {component: {name: other, state: ready, restarts: 0}}}
  - expect: {now: {component: {name: failing, state: down}}}
  - pause: other
  - expect: {now: {component: {name: other, state: paused}}}
  - resume: other
  - restart: {component: other, kill: true}
  - expect: {eventually: {component: {name: other, state: ready, restarts: 1}}}
  - kill: other
  - expect: {now: {component: {name: other, state: down}}}
  - start: failing
  - expect: {eventually: {component: {name: failing, restarts: {atLeast: 2}}}}
"""


@pytest.mark.slow
def test_other_programs_are_started_watched_and_killed(tmp_path: Path) -> None:
    file = tmp_path / "programs.yaml"
    file.write_text(_PROGRAMS)
    answer = nominee("scenario", "run", "--keep", "--dir", str(tmp_path / "d"), str(file))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert (tmp_path / "d" / "programs" / "started").exists()


@pytest.mark.slow
def test_a_failure_names_step_observation_and_command(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    failed = "{object: {kind: Pod, name: a, jsonPath: {.status.phase: Failed}}}"
    file.write_text(f"{_SMALL}  - expect: {{eventually: {failed}, seconds: 1}}\n")
    answer = nominee("scenario", "run", "-o", "json", "--dir", str(tmp_path / "d"), str(file))
    assert answer.returncode == 1
    (result,) = json.loads(answer.stdout)["results"]
    assert result["outcome"] == "failed"
    assert result["reason"] == (
        f"step 3 (expect, {file}:9): eventually pod a has .status.phase = Failed: not within 1 s; observed: "
        "pod default/a: .status.phase = Running"
    )
    assert result["reproduce"] == f"nominee scenario run {file} --name small"
    assert (Path(result["directory"]) / "logs" / "scheduler.log").exists()


def test_the_folder_of_the_scenarios_is_installed() -> None:
    assert list(FOLDER.glob("*.yaml"))


@pytest.mark.slow
def test_a_queue_is_that_of_the_leader(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO_SCHEDULERS, encoding="utf-8")
    answer = nominee("scenario", "run", str(file))
    assert answer.returncode == 0, answer.stdout + answer.stderr
