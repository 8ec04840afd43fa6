"""Start a cluster with the project's plugin, and print the nodes of two pods: `python check.py DIR`."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

from nominee.localcluster.own_cluster import cluster
from nominee.localcluster.supervisor.clock import wait_until
from nominee.scheduler import plugin_loader
from nominee.scheduler.framework.interface import FilterPlugin

OWN = ("scheduler", "controllers", "lab", "k8s")
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: first}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: second}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]}
"""
SECONDS_MAX = 60.0
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: OnlyEven}]}}
"""


def main(directory: Path) -> None:
    """Print the nodes of the pods; an assertion fails where a package of one hides one of the other."""
    for name in OWN:
        assert importlib.import_module(name).OWNER == "the project", name
    assert issubclass(plugin_loader.by_path("only_even:OnlyEven"), FilterPlugin)
    directory.mkdir(parents=True)
    configuration = directory / "scheduler.yaml"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    state = directory / "cluster"
    options = (
        *("--nodes", "2", f"--scheduler-config={configuration}"),
        "--arg=scheduler=--plugin=only_even:OnlyEven",
    )
    with cluster(state, options, "etcd,apiserver,scheduler,kubelet,controllers"):
        nominee(state, "apply", "-f", "-", stdin=PODS)
        assert wait_until(lambda: all(nodes(state)), SECONDS_MAX, poll_seconds=0.2)
        print(*nodes(state))


def nodes(state: Path) -> list[str]:
    """Return the node of each pod, "" of one that is not bound."""
    pods = json.loads(nominee(state, "get", "pods", "-o", "json"))["items"]
    return [pod["spec"].get("nodeName", "") for pod in pods]


def nominee(state: Path, *words: str, stdin: str = "") -> str:
    """Run a command on the cluster, and return what it printed."""
    command = [sys.executable, "-P", "-m", "nominee.cli", *words, f"--dir={state}"]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
