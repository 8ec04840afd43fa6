"""The memory of a cluster, and the figures of its benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.localcluster.components import COMPONENTS, is_installed
from nominee.localcluster.supervisor.clock import wait_until
from tests.localcluster.test_cluster import LIMIT_SECONDS, Cluster, directory
from tests.nominee.test_cli import nominee

__all__ = ["directory"]  # the fixture
pytestmark = pytest.mark.slow


def test_memory_of_100_nodes_with_500_running_pods(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "100")
    path = directory / "web.yaml"
    path.write_text("""
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 500
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: pause, resources: {requests: {cpu: 100m, memory: 100Mi}}}]
""")
    cluster("apply", "-f", path)
    assert wait_until(
        lambda: cluster.json("get", "rs", "web")["status"].get("readyReplicas") == 500, LIMIT_SECONDS
    )
    status = cluster.json("status")
    everything = {component.name for component in COMPONENTS if is_installed(component)}
    assert {c["component"] for c in status["components"]} == everything
    assert status["pssBytes"] < 400 * 2**20, {c["name"]: c["pssBytes"] for c in status["components"]}


def test_the_benchmark_measures(tmp_path: Path) -> None:
    answer = nominee(
        *("bench", "scheduling", "--nodes", "50", "--init-pods", "10", "--pods", "200", "-o", "json"),
    )
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    throughput = report["throughput"]
    assert throughput["average"] == pytest.approx(200 / throughput["seconds"], rel=0.01)
    latency = report["attemptLatencyMilliseconds"]
    assert 0 < latency["p50"] <= latency["p99"]
    assert set(report["memory"]["pssMiB"]) == {"etcd", "apiserver", "scheduler", "supervisor"}
