"""KEP-5278 on real processes: who sees where a pod is going to run, and what survives a kill."""

from __future__ import annotations

import signal

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import Client
from tests.scheduler.e2e.objects import (
    CLAIM_VOLUMES,
    SELECTED_NODE,
    arm,
    bound,
    claim,
    node,
    pod,
    pod_when,
    provision,
    scheduled_condition,
    storage_class,
)
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
EXPECTATION = "NominatedNodeNameForExpectation"
CLEARING = "ClearingNominatedNodeNameAfterBinding"
VERSION = "--emulated-version=1.36"
PREFERS_BEST = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["best"]}]},
            }
        ]
    }
}


def words(value: bool) -> str:
    return str(value).lower()


async def selected_node(client: Client) -> str:
    found = await client.get(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
    return found.metadata.annotations.get(SELECTED_NODE, "")


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("expects", [True, False])
async def test_the_four_combinations_of_the_gates(cluster: Cluster, expects: bool, clears: bool) -> None:
    cluster.arguments("apiserver", NO_TAINTS, VERSION, f"--feature-gates={CLEARING}={words(clears)}")
    cluster.arguments("scheduler", VERSION, f"--feature-gates={EXPECTATION}={words(expects)}")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(storage_class())
        await client.create(claim())
        await client.create(pod("plain"))
        await client.create(pod("slow", volumes=CLAIM_VOLUMES))
        # By watches it could see the pod before its claim, and would write a condition.
        await cluster.start("scheduler")
        assert await bound(client, "plain") == "n1"
        await eventually(lambda: selected_node(client), lambda name: name == "n1")
        slow = await client.get(kinds.POD, "slow", "default")
        assert slow.status.nominatedNodeName == ("n1" if expects else "")
        assert scheduled_condition(slow) is None
        await provision(client)
        assert await bound(client, "slow") == "n1"
        slow = await client.get(kinds.POD, "slow", "default")
        left = "n1" if expects and not clears else ""
        assert slow.status.nominatedNodeName == left
        plain = await client.get(kinds.POD, "plain", "default")
        assert plain.status.nominatedNodeName == ""


@pytest.mark.parametrize(("expects", "want"), [(True, "n1"), (False, "n2")])
async def test_killed_before_the_claim_is_touched(cluster: Cluster, expects: bool, want: str) -> None:
    """Story 2: a better node appears while the scheduler is down."""
    gates = f"--feature-gates={EXPECTATION}={words(expects)}"
    cluster.arguments("apiserver", NO_TAINTS)
    cluster.arguments("scheduler", gates, "--failpoints=scheduler.prebind.before=crash")
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(storage_class())
        await client.create(claim())
        await client.create(pod("p", volumes=CLAIM_VOLUMES, affinity=PREFERS_BEST))
        assert await cluster.exited("scheduler") == -signal.SIGKILL
        assert await selected_node(client) == ""
        found = await client.get(kinds.POD, "p", "default")
        assert found.status.nominatedNodeName == ("n1" if expects else "")
        await client.create(node("n2", labels={"tier": "best"}))
        cluster.arguments("scheduler", gates)
        await cluster.start("scheduler")
        await eventually(lambda: selected_node(client), lambda name: name == want)
        await provision(client)
        assert await bound(client, "p") == want
        assert (await client.get(kinds.POD, "p", "default")).status.nominatedNodeName == ""


async def test_killed_while_the_volume_is_made(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(storage_class())
        await client.create(claim())
        await client.create(pod("p", volumes=CLAIM_VOLUMES, affinity=PREFERS_BEST))
        await eventually(lambda: selected_node(client), lambda name: name == "n1")
        cluster.kill("scheduler")
        await client.create(node("n2", labels={"tier": "best"}))
        await provision(client)
        await cluster.start("scheduler")
        assert await bound(client, "p") == "n1"


async def test_a_bind_that_failed_is_tried_again(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    port = cluster.port("scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        # The scheduler may see a pod before it sees the node, and that is another reason.
        await client.create(pod("earlier"))
        assert await bound(client, "earlier") == "n1"
        arm(port, "scheduler.bind.before", "1*error(503)")
        await client.create(pod("p"))
        failed = await pod_when(client, "p", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(failed)
        assert condition is not None
        assert condition.reason in ("SchedulerError", "")
        assert await bound(client, "p") == "n1"


async def test_the_api_server_dies_between_decision_and_binding(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    port = cluster.port("scheduler")
    arm(port, "scheduler.bind.before", "1*pause")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(pod("p"))
        cluster.kill("apiserver")
        arm(port, "scheduler.bind.before", "off")
        await cluster.start("apiserver")
        assert await bound(client, "p") == "n1"
