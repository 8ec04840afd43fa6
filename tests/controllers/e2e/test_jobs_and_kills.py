"""Jobs whose controllers are killed at random: each pod is counted once, and none is missing.

The environment variables NOMINEE_KILLS, NOMINEE_JOBS and NOMINEE_PODS ask for more than the defaults:

    NOMINEE_KILLS=200 NOMINEE_JOBS=50 NOMINEE_PODS=20 pytest -m slow tests/controllers/e2e -k killed
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.controllers.e2e.test_jobs import INDEXED, body
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
KILLS = int(os.environ.get("NOMINEE_KILLS", "12"))
JOBS = int(os.environ.get("NOMINEE_JOBS", "6"))
PODS = int(os.environ.get("NOMINEE_PODS", "10"))
PARALLELISM = 4
SECONDS_MAX = PATIENCE_SECONDS + 10.0 * KILLS


def _nominee(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Session]:
    directory = tmp_path / "cluster"
    _nominee(
        "up", "--dir", str(directory), "--nodes", "3", "--detach", "--timeout", f"{PATIENCE_SECONDS:g}",
        "--components", "etcd,apiserver,scheduler,kubelet,controllers", "--history",
    )  # fmt: skip
    yield Session(directory)
    _nominee("down", "--dir", str(directory))
    shutil.rmtree(directory / "etcd", ignore_errors=True)


def _jobs() -> list[Any]:
    """Return Jobs of so many pods, every second one Indexed, and of each ten one that fails."""
    found = []
    for number in range(JOBS):
        fails = number % 10 == 9
        spec: dict[str, Any] = {"completions": PODS, "parallelism": PARALLELISM, "backoffLimit": 0}
        if number % 2:
            spec |= INDEXED
        found.append(body(f"job-{number}", runs=f"{500 + 137 * number % 1000}ms", code=int(fails), **spec))
    return found


def _controllers(directory: Path) -> int:
    """Return the process id of the running controllers."""
    try:
        return int(json.loads((directory / "run" / "controllers.json").read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return 0


def _kill(directory: Path, rng: random.Random) -> None:
    """Kill the controllers at a random moment, and wait until others run."""
    time.sleep(rng.uniform(0.0, 2.0))  # noqa: TID251  # the moment is the test
    pid = _controllers(directory)
    os.kill(pid, signal.SIGKILL)
    eventually_sync(lambda: _controllers(directory), lambda found: found not in (0, pid))


def _has_ended(job: Any) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in job["status"].get("conditions", [])
    )


def test_killed_controllers_count_each_pod_once(kubectl: Session) -> None:
    rng = random.Random(21)
    left, at_a_time = _jobs(), -(-JOBS // KILLS)
    for _ in range(KILLS):
        # New Jobs come all the time, so that there is work at each kill.
        share, left = left[:at_a_time], left[at_a_time:]
        if share:
            listed = {"apiVersion": "v1", "kind": "List", "items": share}
            kubectl("apply", "-f", "-", stdin=json.dumps(listed))
        _kill(kubectl.directory, rng)
    jobs = eventually_sync(
        lambda: kubectl.json("get", "jobs")["items"],
        lambda found: all(map(_has_ended, found)),
        limit_seconds=SECONDS_MAX,
    )
    pods = kubectl.json("get", "pods")["items"]
    for job in jobs:
        name, status = job["metadata"]["name"], job["status"]
        own = [pod for pod in pods if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name]
        succeeded = sum(pod["status"]["phase"] == "Succeeded" for pod in own)
        if status["conditions"][-1]["type"] == "Complete":
            assert (status["succeeded"], succeeded, status.get("failed", 0)) == (PODS, PODS, 0), name
        else:
            assert status.get("succeeded", 0) == succeeded, name
            assert status["failed"] >= len(own) - succeeded, name
        assert not any("finalizers" in pod["metadata"] for pod in own), name
    assert len(jobs) == JOBS
    report = json.loads(_nominee("verify", "--dir", str(kubectl.directory), "-o", "json"))
    (counts,) = [each for each in report["invariants"] if each["invariant"] == "jobs-count-pods-once"]
    assert counts["checked"] >= JOBS * PODS
