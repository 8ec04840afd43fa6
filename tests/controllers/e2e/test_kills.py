"""Jobs, StatefulSets and DaemonSets whose controllers are killed at random: nothing is lost or doubled.

The environment variables NOMINEE_KILLS, NOMINEE_JOBS, NOMINEE_PODS and NOMINEE_SETS (StatefulSets, and half
as many DaemonSets) ask for more than the defaults:

    NOMINEE_KILLS=200 NOMINEE_JOBS=50 NOMINEE_PODS=20 NOMINEE_SETS=10 \
        pytest -m slow tests/controllers/e2e -k killed
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
from collections import Counter
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
SETS = int(os.environ.get("NOMINEE_SETS", "4"))
NODES = 4
PARALLELISM = 4
REPLICAS_MAX = 4
SECONDS_MAX = PATIENCE_SECONDS + 10.0 * KILLS
STORAGE_CLASS: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "slow"},
    "provisioner": "delayed.nominee.dev",
    "volumeBindingMode": "WaitForFirstConsumer",
    "parameters": {"delay": "0s"},
}


def nominee(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Session]:
    directory = tmp_path / "cluster"
    nominee(
        "up", "--dir", str(directory), "--nodes", str(NODES), "--detach", "--timeout",
        f"{PATIENCE_SECONDS:g}", "--components", "etcd,apiserver,scheduler,kubelet,controllers", "--history",
    )  # fmt: skip
    yield Session(directory)
    nominee("down", "--dir", str(directory))
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


def _set(kind: str, name: str, **spec: Any) -> Any:
    pods = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "app:0"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pods}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": template, **spec},
    }


def _stateful_set(number: int) -> Any:
    """Return a StatefulSet: every second one is Parallel, and half of them have claims."""
    policy = "Parallel" if number % 2 else "OrderedReady"
    spec: dict[str, Any] = {"replicas": 2, "serviceName": "none", "podManagementPolicy": policy}
    if number % 4 < 2:
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return _set("StatefulSet", f"stateful-{number}", **spec)


def daemon_set(number: int) -> Any:
    """Return a DaemonSet: every second one creates new pods before it deletes old ones."""
    surge = number % 2
    rolling = {"maxSurge": surge, "maxUnavailable": 1 - surge}
    return _set("DaemonSet", f"daemon-{number}", updateStrategy={"rollingUpdate": rolling})


def apply(kubectl: Session, *objects: Any) -> None:
    if objects:
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        kubectl("apply", "-f", "-", stdin=json.dumps(listed))


def _change_sets(kubectl: Session, rng: random.Random, step: int) -> None:
    """Scale a StatefulSet, give it or a DaemonSet another image, or back, and delete a pod; each in turn."""
    turn = step // 4
    stateful, daemon = f"statefulset/stateful-{turn % SETS}", f"daemonset/daemon-{turn % (SETS // 2)}"
    match step % 4:
        case 0:
            kubectl("scale", stateful, f"--replicas={rng.randint(0, REPLICAS_MAX)}")
        case 1:
            kubectl("set", "image", stateful, f"c=app:{rng.randrange(3)}")
        case 2:
            kubectl("set", "image", daemon, f"c=app:{rng.randrange(3)}")
        case 3:
            owner = rng.choice((stateful, daemon)).partition("/")[2]
            pods = kubectl("get", "pods", "-l", f"app={owner}", "-o", "name").split()
            if pods:
                kubectl("delete", rng.choice(pods), "--ignore-not-found", "--wait=false")


def _controllers(directory: Path) -> tuple[str, int]:
    """Return the state and the pid of the controllers (0: they do not run)."""
    components = json.loads((directory / "cluster.json").read_text())["components"]
    (row,) = (each for each in components if each["name"] == "controllers")
    return row["state"], row["pid"] or 0


def _kill(directory: Path, rng: random.Random) -> None:
    """Kill the controllers at a random moment; others are ready when this returns."""
    time.sleep(rng.uniform(0.0, 2.0))  # noqa: TID251  # the moment is the test
    nominee("restart", "controllers", "--kill", "--dir", str(directory), "--timeout", f"{PATIENCE_SECONDS:g}")


def _kill_twice(directory: Path, rng: random.Random) -> bool:
    """Kill the controllers, and those that are started again before they are ready, or soon after.

    Returns:
        Whether the second kill came before they were ready.
    """
    time.sleep(rng.uniform(0.0, 2.0))  # noqa: TID251  # the moment is the test
    _, first = _controllers(directory)
    os.kill(first, signal.SIGKILL)
    _, second = eventually_sync(lambda: _controllers(directory), lambda found: found[1] not in (0, first))
    time.sleep(rng.uniform(0.0, 0.5))  # noqa: TID251  # the moment is the test
    state, _ = _controllers(directory)
    os.kill(second, signal.SIGKILL)
    eventually_sync(
        lambda: _controllers(directory), lambda found: found[0] == "ready" and found[1] not in (0, second)
    )
    return state == "starting"


def _rounds() -> list[int]:
    """Return the number of kills of each round: two in every third one."""
    found: list[int] = []
    while (left := KILLS - sum(found)) > 0:
        found.append(min(left, 2 if len(found) % 3 == 2 else 1))
    return found


def _has_ended(job: Any) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in job["status"].get("conditions", [])
    )


def _is_rolled_out(owner: Any) -> bool:
    """Report whether the status says that each pod is there, ready and of the present template."""
    status = owner["status"]
    if status["observedGeneration"] != owner["metadata"]["generation"]:
        return False
    if owner["kind"] == "DaemonSet":
        numbers = ("desired", "current", "updated")
        counts = [status.get(f"{each}NumberScheduled", 0) for each in numbers]
        counts += [status.get("numberAvailable", 0), NODES - status.get("numberMisscheduled", 0)]
        return counts == [NODES] * len(counts)
    counts = [status.get(each, 0) for each in ("replicas", "readyReplicas", "updatedReplicas")]
    same = status["currentRevision"] == status["updateRevision"]
    return same and counts == [owner["spec"]["replicas"]] * len(counts)


def _ended_jobs(kubectl: Session) -> None:
    """Wait for the ends of all Jobs, and compare their counters with their pods."""
    jobs = eventually_sync(
        lambda: kubectl.json("get", "jobs")["items"],
        lambda found: all(map(_has_ended, found)),
        limit_seconds=SECONDS_MAX,
    )
    pods = kubectl.json("get", "pods", "-l", "batch.kubernetes.io/job-name")["items"]
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


def _rolled_out_sets(kubectl: Session) -> None:
    """Wait until all sets are rolled out, and compare their pods, claims and revisions with them."""
    sets = eventually_sync(
        lambda: kubectl.json("get", "statefulsets,daemonsets")["items"],
        lambda found: all(map(_is_rolled_out, found)),
        limit_seconds=SECONDS_MAX,
    )
    assert len(sets) == SETS + SETS // 2
    claims = kubectl("get", "pvc", "-o", "name").split()
    assert len(set(claims)) == len(claims)
    for owner in sets:
        name, kind = owner["metadata"]["name"], owner["kind"]
        pods = kubectl.json("get", "pods", "-l", f"app={name}")["items"]
        image = owner["spec"]["template"]["spec"]["containers"][0]["image"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} <= {image}, name
        assert all(pod["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"] for pod in pods)
        names = sorted(pod["metadata"]["name"] for pod in pods)
        if kind == "DaemonSet":
            assert Counter(pod["spec"]["nodeName"] for pod in pods) == {
                f"node-{number}": 1 for number in range(NODES)
            }
        else:
            assert names == [f"{name}-{ordinal}" for ordinal in range(owner["spec"]["replicas"])]
        if "volumeClaimTemplates" in owner["spec"]:
            assert {f"persistentvolumeclaim/data-{pod}" for pod in names} <= set(claims)
        revisions = kubectl.json("get", "controllerrevisions", "-l", f"app={name}")["items"]
        templates = [json.dumps(each["data"], sort_keys=True) for each in revisions]
        assert len(set(templates)) == len(templates), name
        latest = max(revisions, key=lambda each: int(each["revision"]))
        assert latest["data"]["spec"]["template"]["spec"]["containers"][0]["image"] == image, name


def test_killed_controllers_lose_and_double_nothing(kubectl: Session) -> None:
    rng = random.Random(21)
    apply(kubectl, STORAGE_CLASS, *map(_stateful_set, range(SETS)), *map(daemon_set, range(SETS // 2)))
    jobs, rounds, early = _jobs(), _rounds(), 0
    for step, times in enumerate(rounds):
        # New Jobs and changes of sets come until the last kill, so that there is work at each.
        begin, end = (JOBS * at // len(rounds) for at in (step, step + 1))
        apply(kubectl, *jobs[begin:end])
        _change_sets(kubectl, rng, step)
        if times == 1:
            _kill(kubectl.directory, rng)
        else:
            early += _kill_twice(kubectl.directory, rng)
    assert early or KILLS < 12
    _ended_jobs(kubectl)
    _rolled_out_sets(kubectl)
    report = json.loads(nominee("verify", "--dir", str(kubectl.directory), "-o", "json"))
    checked = {each["invariant"]: each["checked"] for each in report["invariants"]}
    assert checked["jobs-count-pods-once"] >= JOBS * PODS
    assert checked["daemon-pods-are-created-once"] >= NODES * (SETS // 2)
    assert checked["ordinals-are-created-in-order"] >= SETS
    print(f"{KILLS} kills, {early} of them while the controllers started")
    print({name: count for name, count in checked.items() if count})
