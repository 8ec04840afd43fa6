"""Cases in forks of a started cluster have the histories of simulations of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nominee.lab.chaos.started_cluster import can_fork
from nominee.machinery.wire.values.scalars import Json
from tests.lab.chaos.cases_of_a_started_cluster import CASES, KILLED

TEXT = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
  - apply:
    - {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: app}]}}
  - expect: {eventually: {object: {kind: Pod, name: p, condition: Ready=True}}}
  - delete: {kind: Pod, name: p}
  - expect: {eventually: {object: {kind: Pod, name: p, count: 0}}}
"""
Cases = dict[str, dict[str, Json]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cases]:
    file = tmp_path_factory.mktemp("started") / "small.yaml"
    file.write_text(TEXT)
    words = [sys.executable, "-m", "tests.lab.chaos.cases_of_a_started_cluster", str(file)]
    root = Path(__file__).parents[3]
    ran = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Cases] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_history_of_a_fork_is_that_of_a_simulation_of_its_own(
    results: dict[str, Cases], case: str
) -> None:
    forked, kept, own = (results[way][case] for way in ("forked", "kept", "own"))
    assert own["reached"]
    assert own["error"] == ""
    assert own["files"] == ["history.gz", "simulation.log"]
    assert kept == own
    assert forked["answer"] == own["answer"]


def test_a_case_that_does_not_end_is_an_error(results: dict[str, Cases]) -> None:
    assert {each["error"] for each in results["late"].values()} >= {"the simulation does not end within 0 s"}


def test_a_child_that_is_killed_is_an_error_of_its_case(results: dict[str, Cases]) -> None:
    for way in ("forked", "kept"):
        assert results[way][KILLED]["error"] == "the process of the case ended with exit code -9"
    assert results["own"][KILLED]["error"] == ""


def test_a_process_with_several_threads_does_not_fork() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        over.set()
        thread.join()
