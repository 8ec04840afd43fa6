"""`nominee vpa` on real processes: a resize in place, then the fallback to eviction."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.localcluster.test_cluster import Cluster
from tests.nominee.test_cli import nominee
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

WEB = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: app, resources: {requests: {cpu: 500m}}}
"""


def test_a_wrong_trace_is_refused_with_its_sample(tmp_path: Path) -> None:
    trace = tmp_path / "trace.yaml"
    trace.write_text("- {at: soon, cpu: 1}")
    answer = nominee("vpa", "--trace", trace, "-l", "app=web", directory=tmp_path)
    assert answer.returncode == 2
    assert "sample 1: at: 'soon' is not a duration" in answer.stderr


@pytest.mark.slow
def test_it_resizes_in_place_and_evicts_what_stays_deferred(tmp_path: Path) -> None:
    """On a node of 4 cpu: from 500m to 1, which fits both pods; then to 3, which fits one."""
    cluster = Cluster(tmp_path / "cluster", "--nodes", "1", "--arg", "kubelet=--node-cpu=4")
    try:
        manifest = tmp_path / "web.yaml"
        manifest.write_text(WEB)
        cluster("apply", "-f", manifest)
        eventually_sync(lambda: _requests(cluster), lambda found: found == ["500m", "500m"])
        trace = tmp_path / "trace.csv"
        trace.write_text("at,cpu\n0s,1\n3s,3\n")
        steps = _steps_until_eviction(cluster.directory, trace)
        assert not [step for step in steps if step["error"]]
        sizes = [
            container["requests"]["cpu"]
            for step in steps
            if step["action"] == "Resize"
            for container in step["containers"]
        ]
        assert sizes[:2] == ["1", "1"]
        assert "3" in sizes
        evicted = steps[-1]
        assert evicted["action"] == "Evict"
        assert evicted["reason"] == "the resize is Deferred for more than 2 s"
        assert evicted["atSeconds"] >= 5
    finally:
        cluster("down", "--kill")


def _steps_until_eviction(directory: Path, trace: Path) -> list[dict[str, Any]]:
    """Run the updater until it evicts a pod, and return its steps."""
    command = [sys.executable, "-P", "-m", "nominee.cli", "vpa", "--trace", str(trace), "-l", "app=web"]
    command += ["--margin", "0", "--interval", "0.5", "--duration", f"{PATIENCE_SECONDS:g}"]
    command += ["--deferred-timeout", "2", "-o", "json", "--dir", str(directory)]
    steps = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as updater:
        assert updater.stdout is not None
        for line in updater.stdout:
            steps.append(json.loads(line))
            if steps[-1]["action"] == "Evict":
                break
        updater.terminate()
    return steps


def _requests(cluster: Cluster) -> list[str]:
    pods = cluster.json("get", "pods")["items"]
    return [
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        for pod in pods
        if pod["status"].get("phase") == "Running"
    ]
