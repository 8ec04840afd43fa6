"""Random load and faults: the plan, the command, and runs in a simulation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from nominee.commands.chaos import run
from nominee.commands.chaos.explore import chaos
from nominee.lab.chaos.random import random_cluster
from nominee.lab.chaos.random.load import BASE, Target, plan
from nominee.lab.chaos.random.objects import objects_of
from nominee.lab.chaos.random.operations import (
    AddNode,
    ChangeTemplate,
    CreateGang,
    CreatePod,
    CreateWorkload,
    DeleteGang,
    DeletePod,
    DeleteWorkload,
    EvictWorkload,
    FailCalls,
    JumpClock,
    Load,
    Operation,
    RemoveNode,
    ResizePod,
    ScaleWorkload,
)
from nominee.lab.chaos.random.random_cluster import OPTIONS
from nominee.lab.chaos.random.random_run import Outcome, RandomRun
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.play.simulate import with_cluster
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError
from nominee.simulation.simulation import Simulation

TARGET = Target(
    failpoints={
        "apiserver": ["apiserver.write.after"],
        "cloud": [],
        "scheduler": ["scheduler.bind.after"],
        "kubelet-0": [],
    }
)


def test_a_seed_gives_one_plan() -> None:
    assert plan(1, 60.0, 4.0, TARGET) == plan(1, 60.0, 4.0, TARGET)
    assert plan(1, 60.0, 4.0, TARGET) != plan(2, 60.0, 4.0, TARGET)


def test_a_plan_keeps_its_rate_and_length_and_has_every_operation() -> None:
    found = plan(1, 600.0, 4.0, TARGET)
    assert 2000 < len(found) < 2800
    assert [each.at for each in found] == sorted(each.at for each in found)
    assert found[-1].at < 600.0
    assert {type(each.operation) for each in found} == set(get_args(Operation))


def test_only_pods_that_exist_are_resized_or_deleted() -> None:
    pods: dict[str, CreatePod] = {}
    for each in plan(3, 300.0, 4.0, TARGET):
        match each.operation:
            case CreatePod(name=name):
                assert name not in pods
                pods[name] = each.operation
            case ResizePod(name=name, limited=limited):
                assert pods[name].limited == limited
            case DeletePod(name=name, limited=limited, volume=volume):
                created = pods.pop(name)
                assert (created.limited, created.volume) == (limited, volume)


def test_only_workloads_and_gangs_that_exist_are_changed() -> None:
    present = {BASE.name}
    for each in plan(3, 300.0, 4.0, TARGET):
        match each.operation:
            case CreateWorkload(name=name) | CreateGang(name=name):
                assert name not in present
                present.add(name)
            case ScaleWorkload(name=name) | ChangeTemplate(name=name) | EvictWorkload(name=name):
                assert name in present
            case DeleteWorkload(name=name) | DeleteGang(name=name):
                present.remove(name)


def test_every_object_of_a_plan_can_be_parsed() -> None:
    for each in plan(5, 300.0, 4.0, TARGET):
        if isinstance(each.operation, CreatePod | CreateWorkload | CreateGang):
            made = [type(one).__name__ for one in objects_of(each.operation)]
            match each.operation:
                case CreatePod(volume=volume):
                    assert made == (["PersistentVolumeClaim", "Pod"] if volume else ["Pod"])
                case CreateWorkload(kind=kind):
                    assert made == ["PodDisruptionBudget", kind]
                case CreateGang(count=count):
                    assert made == ["PodGroup", *["Pod"] * count]


def test_the_api_server_and_the_cloud_keep_their_clocks_and_calls() -> None:
    disturbed = {
        each.operation.component
        for each in plan(1, 600.0, 4.0, TARGET)
        if isinstance(each.operation, FailCalls | JumpClock)
    }
    assert disturbed == {"scheduler", "kubelet-0"}


def test_without_processes_there_is_load_only() -> None:
    found = plan(1, 60.0, 4.0, Target(failpoints={}, has_group=False))
    assert {type(each.operation) for each in found} <= set(get_args(Load)) - {AddNode, RemoveNode}


@pytest.mark.slow
@pytest.mark.processes
def test_a_run_in_a_simulation_comes_to_rest_and_is_repeated_by_its_seed() -> None:
    async def run(cluster: ScenarioCluster) -> Outcome:
        return await RandomRun(cluster, lambda _: None).run(7, 5.0, 4.0)

    outcome, again = (with_cluster(OPTIONS, Simulation(7), run) for _ in range(2))
    assert outcome == again
    assert outcome.operations["CreatePod"] > 3
    assert (outcome.violations, outcome.unsettled) == ((), "")


_ARGUMENTS = ("--seed", "7", "--duration", "5s", "--rate", "4")


@pytest.mark.parametrize(
    ("violations", "unsettled", "message"),
    [
        (
            (Violation(invariant="one-node-per-pod", message="moved", objects=("Pod default/p",)),),
            "",
            "moved",
        ),
        ((), "pod default/p is bound to n1 and is not ready", "does not come to rest"),
    ],
)
@pytest.mark.processes
def test_a_failure_has_seed_version_commit_and_command(
    monkeypatch: pytest.MonkeyPatch, violations: tuple[Violation, ...], unsettled: str, message: str
) -> None:
    outcome = Outcome(
        operations=Counter(),
        refused=Counter(),
        violations=violations,
        unsettled=unsettled,
        pods=0,
        seconds=1.0,
    )
    monkeypatch.setattr(random_cluster, "run_real", lambda *_: outcome)
    monkeypatch.setattr(run, "_in_own_process", run.one)
    ran = CliRunner().invoke(chaos, ["run", *_ARGUMENTS, "--rounds", "3"])
    assert ran.exit_code == 1
    assert message in ran.output
    assert "commit" in ran.output
    assert "nominee chaos run --seed 7 --duration 5s --rate 4" in ran.output
    assert ran.output.count("reproduce") == 1
    xml = CliRunner().invoke(chaos, ["run", *_ARGUMENTS, "-o", "junit"]).output
    suite = ElementTree.fromstring(xml[xml.index("<") :])
    assert suite.get("failures") == "1"


@pytest.mark.processes
def test_a_cluster_that_does_not_start_is_status_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> Outcome:
        raise ClusterError("the cluster did not start")

    monkeypatch.setattr(random_cluster, "run_real", fail)
    arguments = ["run", "--seed", "1", "--duration", "1s", "--dir", str(tmp_path)]
    ran = CliRunner().invoke(chaos, arguments)
    assert ran.exit_code == 2
    assert "did not start" in ran.output


@pytest.mark.slow
def test_several_real_runs_have_processes_and_directories_of_their_own(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "nominee.cli", "chaos", "run", "--seed", "1", "--duration", "2s"]
    command += ["--rounds", "2", "--dir", str(tmp_path), "--output", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    runs = json.loads(ran.stdout)["runs"]
    assert [run["seed"] for run in runs] == [1, 2]
    assert [run["problems"] for run in runs] == [[], []]
    assert all((tmp_path / f"seed-{seed}" / "logs" / "chaos.log").exists() for seed in (1, 2))
