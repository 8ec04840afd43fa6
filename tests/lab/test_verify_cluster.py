"""No invariant is violated in the history of a real cluster, whatever is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nominee.localcluster.supervisor.clock import wait_until
from tests.localcluster.test_cluster import LIMIT_SECONDS, Cluster
from tests.nominee.test_cli import nominee

PRIORITY = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  priorityClassName: {priority}
  containers:
  - {{name: c, image: pause, resources: {{requests: {{cpu: {cpu}, memory: 100Mi}}}}}}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    nominee("down", "--kill", directory=tmp_path / "cluster")


class _Pods:
    """The pods of a cluster's default namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def apply(self, **cpu: str) -> None:
        """Create pods by name and cpu; those named high have priority."""
        priority = {name: "high" if name.startswith("high") else '""' for name in cpu}
        texts = [POD.format(name=name, cpu=cpu[name], priority=priority[name]) for name in cpu]
        path = self._cluster.directory / "pods.yaml"
        path.write_text("".join(texts))
        self._cluster("apply", "-f", path)

    def resize(self, name: str, cpu: str) -> None:
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
        self._cluster("patch", "pod", name, "--subresource", "resize", "-p", json.dumps(patch))

    def wait(self, *running: str, cpu: str = "") -> None:
        """Wait until these pods run, with `cpu` allocated."""

        def done() -> bool:
            pods = {pod["metadata"]["name"]: pod["status"] for pod in self._items()}
            return all(name in pods and _runs(pods[name], cpu) for name in running)

        assert wait_until(done, LIMIT_SECONDS, poll_seconds=0.2), self._items()

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._cluster.json("get", "pods")["items"]
        return items


def _runs(status: dict[str, Any], cpu: str) -> bool:
    if status["phase"] != "Running" or status.get("conditions") is None:
        return False
    container = status["containerStatuses"][0]
    allocated, actual = container["allocatedResources"]["cpu"], container["resources"]["requests"]["cpu"]
    return not cpu or allocated == actual == cpu


def _results(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["invariant"]: result for result in document["invariants"]}


@pytest.mark.slow
def test_preemption_resizes_and_kills_violate_nothing(directory: Path) -> None:
    components = "etcd,apiserver,scheduler,controllers,kubelet"
    gates = "SchedulerPreemptionForPodResize=true"
    cluster = Cluster(
        directory, "--nodes", "2", "--history", "--components", components, "--feature-gates", gates
    )
    pods = _Pods(cluster)
    (directory / "priority.yaml").write_text(PRIORITY)
    cluster("apply", "-f", directory / "priority.yaml")
    pods.apply(low0="1500m", low1="1500m", low2="1500m", low3="1500m")
    pods.wait("low0", "low1", "low2", "low3")
    pods.apply(high0="2500m", high1="2500m")
    cluster("restart", "scheduler", "--kill")
    cluster("restart", "apiserver", "--kill")
    pods.wait("high0", "high1")
    pods.resize("high0", "3500m")
    cluster("restart", "kubelet", "--kill")
    pods.wait("high0", cpu="3500m")
    pods.resize("high1", "3500m")
    cluster("restart", "scheduler", "--kill")
    pods.wait("high1", cpu="3500m")

    live = cluster.json("verify")
    assert live["holds"] is True
    assert live["history"]["complete"] is True
    checked = {name: result["checked"] for name, result in _results(live).items()}
    assert checked["victims-have-lower-priority"] == 4
    assert checked["deferred-resizes-are-queued"] == 2
    assert checked["checkpoints-match-status"] == 2
    assert checked["deleted-pods-end"] == 4
    assert checked["nominations-follow-states"] >= 8
    assert checked["allocated-within-allocatable"] > 10

    cluster("down")
    after = cluster.json("verify")
    assert after["holds"] is True
    assert after["revisions"] >= live["revisions"]
    (directory / "history.gz").unlink()
    of_etcd = cluster.json("verify")
    assert (of_etcd["holds"], of_etcd["revisions"]) == (True, after["revisions"])


@pytest.mark.slow
def test_the_etcd_members_of_a_cluster_that_is_down(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver", "--replicas", "etcd=3")
    live = cluster.json("verify")
    cluster("down")
    after = cluster.json("verify")
    assert after["holds"] is True
    assert after["revisions"] >= live["revisions"] > 10
    assert not list((directory / "run").glob("etcd*.json"))
