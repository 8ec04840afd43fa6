"""Preemption for deferred resizes on real processes; the test acts as the kubelet (KEP-5836)."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import Client
from tests.scheduler.e2e.objects import node, pod_when, scheduled_condition
from tests.scheduler.e2e.resizing import (
    budget,
    create_priorities,
    defer,
    end,
    entry,
    evicted,
    is_evicted,
    label,
    report,
    run_pod,
    set_policy,
    settle,
    start,
    waits,
)
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

RESTART_OPTIONS = [
    ("none", True),
    ("memory", True),
    ("nominated-node-name", False),
    ("spec-node-name", False),
]


async def crowd(client: Client) -> None:
    """node1 of 300m is full: a victim of 200m, and a pod of high priority that grows from 100m to 300m."""
    await create_priorities(client)
    await client.create(node("node1", cpu="300m"))
    await run_pod(client, "victim", "200m", on="node1")
    await run_pod(client, "growing", "100m", on="node1", priority="high")
    await defer(client, "growing", "300m", allocated="100m")


@pytest.mark.parametrize(
    ("flavour", "parks"), [("kep", "NodeResourcesFit"), ("1.37", "DeferredPodScheduling")]
)
async def test_a_resize_evicts_waits_and_is_resolved(cluster: Cluster, flavour: str, parks: str) -> None:
    """ "Summary of Scheduling Cycle Flow"."""
    await start(cluster, f"--resize-preemption-flavour={flavour}")
    async with cluster.client() as client:
        await crowd(client)
        victim = await evicted(client, "victim")
        disrupted = next(c for c in victim.status.conditions if c.type == "DisruptionTarget")
        assert disrupted.reason == "PreemptionByScheduler"
        assert victim.metadata.deletionGracePeriodSeconds == 3600
        await waits(cluster, "growing")

        await end(client, "victim")
        await waits(cluster, "growing", parks)
        growing = await client.get(kinds.POD, "growing", "default")
        condition = scheduled_condition(growing)
        assert condition is not None
        assert condition.status == "True"
        assert growing.status.nominatedNodeName == ""

        await report(client, "growing", "300m")
        await eventually(lambda: entry(cluster, "growing"), lambda found: not found)


async def test_a_starting_scheduler_reads_conditions_and_policies(cluster: Cluster) -> None:
    """ "Scheduler Restart and State Recovery", "Version Skew Strategy"."""
    await start(cluster, scheduler=False)
    async with cluster.client() as client:
        await crowd(client)
        await set_policy(client, "node1", "autoscaling.k8s.io/vpa-updater")
        await cluster.start("scheduler")
        await settle(client, 0)
        assert entry(cluster, "growing") == {}
        await set_policy(client, "node1")
        await evicted(client, "victim")


async def test_the_gate_is_off(cluster: Cluster) -> None:
    """ "Feature Enablement and Rollback"."""
    await start(cluster)
    cluster.arguments("scheduler")
    await cluster.stop("scheduler")
    await cluster.start("scheduler")
    async with cluster.client() as client:
        await crowd(client)
        await settle(client, 0)
        assert entry(cluster, "growing") == {}
        assert not await is_evicted(client, "victim")


@pytest.mark.slow
@pytest.mark.parametrize(("tracking", "again"), RESTART_OPTIONS)
async def test_a_scheduler_dies_while_its_victim_terminates(
    cluster: Cluster, tracking: str, again: bool
) -> None:
    """ "Tracking Preemption Nominations to Avoid Double Preemption": options 1 to 4 over a restart."""
    nominates = tracking == "nominated-node-name"
    switch = ("--allow-nominated-node-name-of-deferred-resizes",) if nominates else ()
    await start(cluster, f"--resize-preemption-tracking={tracking}", api=switch)
    async with cluster.client() as client:
        await create_priorities(client)
        await client.create(node("node1", cpu="300m"))
        await run_pod(client, "victim", "100m", on="node1")
        await run_pod(client, "other", "100m", on="node1", priority="middle")
        await run_pod(client, "growing", "100m", on="node1", priority="high")
        await defer(client, "growing", "200m", allocated="100m")
        await evicted(client, "victim")
        if nominates:
            await pod_when(client, "growing", lambda found: found.status.nominatedNodeName == "node1")
        cluster.kill("scheduler")
        # From now on the other pod is the better victim.
        await client.create(budget(await label(client, "victim", of="victim")))
        await cluster.start("scheduler")
        if again:
            await evicted(client, "other")
            return
        await waits(cluster, "growing")
        await settle(client, 0)
        assert not await is_evicted(client, "other")
        await end(client, "victim")
        await waits(cluster, "growing")
        await report(client, "growing", "200m")
        await pod_when(client, "growing", lambda found: found.status.nominatedNodeName == "")
        assert not await is_evicted(client, "other")


async def test_option_3_needs_the_switch_of_the_api_server(cluster: Cluster) -> None:
    """ "Option 3: Reuse NominatedNodeName": without it preemption works, and the nomination is refused."""
    await start(cluster, "--resize-preemption-tracking=nominated-node-name")
    async with cluster.client() as client:
        await crowd(client)
        await evicted(client, "victim")
        await eventually(lambda: cluster.log("scheduler"), lambda text: "already bound to a node" in text)
        await end(client, "victim")
        await waits(cluster, "growing")
        assert (await client.get(kinds.POD, "growing", "default")).status.nominatedNodeName == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "tracking"),
    [
        ("scheduler.cycle.before", "none"),
        ("scheduler.preempt.before", "none"),
        ("scheduler.preempt.victim.marked", "none"),
        ("scheduler.preempt.victim.after", "none"),
        ("scheduler.status.before", "nominated-node-name"),
        ("scheduler.status.after", "nominated-node-name"),
    ],
)
async def test_a_scheduler_dies_at_each_step_of_a_resize(cluster: Cluster, point: str, tracking: str) -> None:
    """ "Scheduler Restart and State Recovery": the next scheduler finishes, and evicts nothing else."""
    switch = ("--allow-nominated-node-name-of-deferred-resizes",) if tracking != "none" else ()
    await start(cluster, f"--resize-preemption-tracking={tracking}", api=switch)
    cluster.failpoint("scheduler", point, "crash")
    async with cluster.client() as client:
        await create_priorities(client)
        await client.create(node("node1", cpu="300m"))
        await run_pod(client, "victim", "100m", on="node1")
        await run_pod(client, "other", "100m", on="node1", priority="middle")
        await run_pod(client, "growing", "100m", on="node1", priority="high")
        await defer(client, "growing", "200m", allocated="100m")
        assert await cluster.exited("scheduler") < 0
        await cluster.start("scheduler")
        await evicted(client, "victim")
        await end(client, "victim")
        await eventually(
            lambda: cluster.ask("scheduler", "/debug/explain?pod=default/growing").text,
            lambda text: "pod resize fits, waiting for Kubelet actuation" in text,
        )
        assert not await is_evicted(client, "other")
        await report(client, "growing", "200m")
        await eventually(lambda: entry(cluster, "growing"), lambda found: not found)


async def test_the_policy_is_set_and_cleared_while_victims_are_evicted(cluster: Cluster) -> None:
    """ "Scheduler Action": the pod that is back in the queue is tried again once the evictions are over."""
    await start(cluster)
    cluster.failpoint("scheduler", "scheduler.preempt.before", "pause")
    async with cluster.client() as client:
        await crowd(client)
        await waits(cluster, "growing")
        await set_policy(client, "node1", "example.com/autoscaler")
        await eventually(lambda: entry(cluster, "growing"), lambda found: not found)
        await set_policy(client, "node1")
        await eventually(lambda: entry(cluster, "growing"), lambda found: found.get("place") == "gated")
        cluster.failpoint("scheduler", "scheduler.preempt.before", "off")
        await evicted(client, "victim")
        await end(client, "victim")
        await eventually(
            lambda: cluster.ask("scheduler", "/debug/explain?pod=default/growing").text,
            lambda text: "pod resize fits, waiting for Kubelet actuation" in text,
        )
