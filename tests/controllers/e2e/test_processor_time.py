"""The processor time of the controllers for DaemonSets and Jobs on many nodes.

docs/benchmarks.md has the figures of 1,000 nodes, 5 DaemonSets and 200 Jobs of 20 pods:

    NOMINEE_NODES=1000 NOMINEE_JOBS=200 pytest -s -m slow tests/controllers/e2e/test_processor_time.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from nominee.localcluster.process_usage import cpu_seconds
from nominee.localcluster.supervisor.directory import StateDirectory
from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.controllers.e2e.test_jobs import body
from tests.controllers.e2e.test_kills import apply, daemon_set, nominee
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
NODES = int(os.environ.get("NOMINEE_NODES", "40"))
JOBS = int(os.environ.get("NOMINEE_JOBS", "10"))
DAEMON_SETS, PODS, JOBS_AT_ONCE = 5, 20, 20
SECONDS_MAX = PATIENCE_SECONDS + NODES + 5.0 * JOBS
MILLISECONDS_MAX = 40.0
"""For each pod, on a loaded host."""


def _used(directory: Path) -> dict[str, float]:
    """Return the processor time of each process so far, in seconds."""
    files = StateDirectory(directory).live_run_files()
    return {name: cpu_seconds(each["pid"]) or 0.0 for name, each in files.items() if "pid" in each}


def _summed(kubectl: Session, kind: str, field: str) -> int:
    words = ("get", kind, "-o", f"jsonpath={{.items[*].status.{field}}}")
    return sum(map(int, kubectl(*words).split()))


def _report(part: str, pods: int, before: dict[str, float], after: dict[str, float]) -> float:
    """Print the processor time of a part; return that of the controllers for a pod, in milliseconds."""
    used = {name: after[name] - before.get(name, 0.0) for name in after}
    figures = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in sorted(used.items()))
    each = 1000 * used["controllers"] / pods
    print(f"{part}: {pods} pods, controllers {each:.2f} ms a pod; {figures}", flush=True)
    return each


def test_daemon_sets_and_jobs_on_many_nodes(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    nominee(
        "up", "--dir", str(directory), "--nodes", str(NODES), "--detach", "--timeout", f"{SECONDS_MAX:g}",
        "--components", "etcd,apiserver,scheduler,kubelet,controllers",
    )  # fmt: skip
    try:
        kubectl = Session(directory)
        begun = _used(directory)
        apply(kubectl, *map(daemon_set, range(DAEMON_SETS)))
        daemons = NODES * DAEMON_SETS
        eventually_sync(
            lambda: _summed(kubectl, "daemonsets", "numberAvailable"),
            lambda found: found == daemons,
            limit_seconds=SECONDS_MAX,
            poll_seconds=1.0,
        )
        placed = _used(directory)
        for_daemons = _report("DaemonSets", daemons, begun, placed)
        jobs: list[Any] = [
            body(f"job-{number}", runs="1s", completions=PODS, parallelism=PODS) for number in range(JOBS)
        ]
        for start in range(0, JOBS, JOBS_AT_ONCE):
            apply(kubectl, *jobs[start : start + JOBS_AT_ONCE])
        eventually_sync(
            lambda: _summed(kubectl, "jobs", "succeeded"),
            lambda found: found == JOBS * PODS,
            limit_seconds=SECONDS_MAX,
            poll_seconds=1.0,
        )
        ended = _used(directory)
    finally:
        nominee("down", "--dir", str(directory))
        shutil.rmtree(directory / "etcd", ignore_errors=True)
    for_jobs = _report("Jobs", JOBS * PODS, placed, ended)
    assert max(for_daemons, for_jobs) < MILLISECONDS_MAX
