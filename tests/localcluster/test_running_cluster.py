"""`RunningCluster` on real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.localcluster.cluster import ClusterError, RunningCluster
from nominee.localcluster.own_cluster import cluster

pytestmark = pytest.mark.processes
POINT = "scheduler.nominate.after"


@pytest.mark.slow
def test_processes_of_a_running_cluster_are_operated(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", ["--insecure"]) as running:
        assert running.directory == tmp_path / "cluster"
        assert running.kubeconfig.is_file()
        before = {each.name: each for each in running.processes()}
        assert {name: each.state for name, each in before.items()} == {
            "etcd": "ready",
            "apiserver": "ready",
            "scheduler": "ready",
        }

        running.arm_failpoint("scheduler", POINT, "sleep(1)")
        assert {each.name: each.action for each in running.failpoints("scheduler")}[POINT] == "sleep(1)"
        running.set_fault("scheduler", "delay(1)", method="Bind")
        running.shift_clock("scheduler", 60.0)
        clock = running.get_json("scheduler", "/clock")
        assert isinstance(clock, dict)
        assert clock["offsetSeconds"] == 60.0

        running.restart("scheduler", kill=True)
        after = {each.name: each for each in running.processes()}
        assert after["scheduler"].pid != before["scheduler"].pid
        assert after["apiserver"].pid == before["apiserver"].pid
        assert {each.name: each.action for each in running.failpoints("scheduler")}[POINT] == ""

        with pytest.raises(ClusterError, match=r"scheduler/metrics answers text/plain.*, not JSON"):
            running.get_json("scheduler", "/metrics")

        running.stop("scheduler")
        with pytest.raises(ClusterError, match="scheduler does not run, or has no serving port"):
            running.get("scheduler", "/metrics")
        with pytest.raises(ClusterError, match="scheduler does not run"):
            running.arm_failpoint("scheduler", POINT, "crash")
        running.start("scheduler")
        assert "scheduler_pending_pods" in running.get("scheduler", "/metrics").text

        running.pause("scheduler")
        running.resume("scheduler")
        with pytest.raises(ClusterError, match="there is no process kubelet"):
            running.arm_failpoint("kubelet", POINT, "crash")
        with pytest.raises(ClusterError, match="no failpoint no"):
            running.arm_failpoint("scheduler", "no.such.point", "crash")
        with pytest.raises(ClusterError, match="restart kubelet: "):
            running.restart("kubelet")
    with pytest.raises(ClusterError, match="status: no cluster runs in"):
        RunningCluster(tmp_path / "cluster").processes()


def test_of_several_processes_the_running_ones_are_operated(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", ["--insecure", "--replicas", "scheduler=2"]) as running:
        running.stop("scheduler-0")
        assert "scheduler_pending_pods" in running.get("scheduler", "/metrics").text
        running.arm_failpoint("scheduler", POINT, "sleep(1)")
        assert {each.name: each.action for each in running.failpoints("scheduler-1")}[POINT] == "sleep(1)"
