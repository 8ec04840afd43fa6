"""A former leader whose binding arrives late: the API server's precondition refuses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import connect
from tests.scheduler.e2e.objects import bound, node, pod
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"
POINT = "apiserver.write.before"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 500ms}
"""


def a_binding_waits(cluster: Cluster) -> bool:
    """Return whether the first API server holds the scheduler's binding (its other writes are renewals)."""
    point = json.loads(cluster.ask("apiserver-0", f"/failpoints/{POINT}").text)
    waiting = int(point["waiting"])
    return waiting > 1 or (waiting == 1 and str(point["last"]["resource"]) == "pods")


def refused_bindings(cluster: Cluster) -> int:
    """Return how many requests for bindings the first API server has answered with 409."""
    count = 0
    for line in cluster.ask("apiserver-0", "/metrics").text.splitlines():
        if line.startswith("apiserver_request_total") and 'subresource="binding"' in line:
            count += int(float(line.split()[-1])) if 'code="409"' in line else 0
    return count


@pytest.mark.slow
async def test_a_former_leader_that_resumes_does_not_bind(cluster: Cluster, tmp_path: Path) -> None:
    """One API server holds the leader's binding while a new leader binds the pod through the other."""
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    servers = ("apiserver-0", "apiserver-1")
    for name in servers:
        cluster.arguments(name, "--apiserver-count=2", NO_TAINTS, module="apiserver")
    await cluster.start("etcd", *servers)
    for scheduler, server in zip(("scheduler-0", "scheduler-1"), servers, strict=True):
        address = f"--apiserver={cluster.run_file(server).grpc}"
        cluster.arguments(scheduler, f"--config={config}", "--leader-elect", address, module="scheduler")
    async with await connect(cluster.directory, "apiserver-1") as client:

        async def holder() -> str:
            leases = (await client.list(kinds.LEASE, "kube-system")).items
            return next((each.spec.holderIdentity for each in leases), "")

        await client.create(node("n1"))
        await cluster.start("scheduler-0")
        await eventually(holder, lambda name: "scheduler-0" in name)
        await cluster.start("scheduler-1")

        # The next binding waits in apiserver-0; renewals of the lease, too, if they come first.
        cluster.failpoint("apiserver-0", POINT, "pause")
        await client.create(pod("p"))
        await eventually(lambda: a_binding_waits(cluster))
        cluster.pause("scheduler-0")
        await client.delete(kinds.NODE, "n1")
        await client.create(node("n2"))
        await eventually(holder, lambda name: "scheduler-1" in name)
        assert await bound(client, "p") == "n2"
        before = await client.get(kinds.POD, "p", "default")

        assert refused_bindings(cluster) == 0
        cluster.failpoint("apiserver-0", POINT, "off")
        await eventually(lambda: refused_bindings(cluster), lambda count: count == 1)
        cluster.resume("scheduler-0")
        assert await cluster.exited("scheduler-0") == 1
        assert "leaderelection lost" in cluster.log("scheduler-0")
        after = await client.get(kinds.POD, "p", "default")
        # It may write PodScheduled=False (SchedulerError) before it ends: the patch has no precondition.
        assert after.spec == before.spec
