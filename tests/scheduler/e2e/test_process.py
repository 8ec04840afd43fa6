"""The scheduler as a process: its configuration, plugins from outside, leader election, its end."""

from __future__ import annotations

from pathlib import Path

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.scheduler.e2e.objects import bound, debug_queue, node, pod, pod_when, scheduled_condition
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
PLUGIN = "--plugin=tests.scheduler.e2e.outside_plugin:Turnstile"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
leaderElection: {leaseDuration: 1h, renewDeadline: 59m, retryPeriod: 200ms}
profiles:
- schedulerName: default-scheduler
- schedulerName: guarded
  plugins:
    multiPoint:
      enabled: [{name: Turnstile}]
  pluginConfig:
  - name: Turnstile
    args: {seconds: SECONDS}
"""


def labelled(name: str, label: str, scheduler: str = "guarded") -> core.Pod:
    made = pod(name, schedulerName=scheduler)
    made.metadata.labels[label] = ""
    return made


async def test_a_plugin_from_outside(cluster: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.replace("SECONDS", "60"), encoding="utf-8")
    cluster.arguments("apiserver", NO_TAINTS)
    cluster.arguments("scheduler", f"--config={config}", PLUGIN)
    await cluster.start("etcd", "apiserver", "scheduler")
    port = cluster.port("scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(labelled("free", "reject", "default-scheduler"))
        assert await bound(client, "free") == "n1"

        await client.create(labelled("rejected", "reject"))
        found = await pod_when(client, "rejected", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(found)
        assert condition is not None
        assert condition.message.startswith("0/1 nodes are available: 1 closed.")

        await client.create(labelled("waits", "wait"))
        await pod_when(client, "waits", lambda p: p.status.nominatedNodeName == "n1")
        await eventually(lambda: bool(debug_queue(port)["waiting_on_permit"]))
        assert debug_queue(port)["waiting_on_permit"] == [{"pod": "default/waits", "node": "n1"}]
        # Deleted while it waits: its room is free at once.
        await client.delete(kinds.POD, "waits", "default")
        await eventually(lambda: not debug_queue(port)["waiting_on_permit"])
        assert "scheduler_schedule_attempts_total" in cluster.ask("scheduler", "/metrics").text


async def test_permit_runs_out_of_time_and_the_nomination_is_cleared(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.replace("SECONDS", "0.3"), encoding="utf-8")
    cluster.arguments("apiserver", NO_TAINTS)
    cluster.arguments("scheduler", f"--config={config}", PLUGIN)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(labelled("waits", "wait"))

        def timed_out(found: core.Pod) -> bool:
            condition = scheduled_condition(found)
            return condition is not None and "rejected due to timeout after waiting" in condition.message

        # It is tried again, and nominated again, every second; and before the scheduler has seen the node it
        # has another message.
        found = await pod_when(client, "waits", lambda p: timed_out(p) and not p.status.nominatedNodeName)
        condition = scheduled_condition(found)
        assert condition is not None
        assert condition.reason == "Unschedulable"


async def test_a_wrong_configuration_ends_with_the_field(cluster: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.replace("podInitialBackoffSeconds: 1", "parallelism: 0"), encoding="utf-8")
    cluster.arguments("scheduler", f"--config={config}", PLUGIN)
    cluster.spawn("scheduler")
    assert await cluster.exited("scheduler") == 2
    assert "parallelism: Invalid value: 0" in cluster.log("scheduler")


async def test_a_standby_takes_over(cluster: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.replace("SECONDS", "60"), encoding="utf-8")
    cluster.arguments("apiserver", NO_TAINTS)
    for name in ("scheduler", "scheduler-2"):
        cluster.arguments(name, f"--config={config}", PLUGIN, "--leader-elect", module="scheduler")
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(pod("first"))
        assert await bound(client, "first") == "n1"
        await cluster.start("scheduler-2")
        assert (await cluster.stop("scheduler")) == 0
        await client.create(pod("second"))
        assert await bound(client, "second") == "n1"
        cluster.spawn("scheduler")
        await cluster.ready("scheduler")
        cluster.kill("scheduler-2")
        # Its lease would expire in an hour; tests/machinery has tests of expiry.
        await client.delete(kinds.LEASE, "kube-scheduler", "kube-system")
        await client.create(pod("third"))
        assert await bound(client, "third") == "n1"
