"""A scheduler whose calls to the API server are cut or lost, or whose watches are stale."""

from __future__ import annotations

import json

import pytest

from nominee.machinery.api import kinds
from tests.scheduler.e2e.objects import bound, debug_queue, node, pod, pod_when, scheduled_condition
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"


def fault(cluster: Cluster, action: str, **selection: str) -> None:
    """Set a fault of the scheduler's calls."""
    body = json.dumps({**selection, "action": action})
    answer = cluster.ask("scheduler", "/faults", method="PUT", body=body)
    assert answer.status == 200, answer.text


@pytest.mark.slow
async def test_a_scheduler_that_is_cut_off_or_stale(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1"))
        await client.create(pod("first"))
        assert await bound(client, "first") == "n1"

        fault(cluster, "cut")
        await client.create(pod("second"))
        await eventually(
            lambda: json.loads(cluster.ask("scheduler", "/faults").text)["rules"][0]["fired"],
            lambda fired: fired > 3,
        )
        assert scheduled_condition(await client.get(kinds.POD, "second", "default")) is None
        fault(cluster, "off")
        assert await bound(client, "second") == "n1"

        fault(cluster, "hold", kind="nodes")
        await client.create(node("n2"))
        await client.create(pod("third", nodeName="", nodeSelector={"kubernetes.io/hostname": "n2"}))
        found = await pod_when(client, "third", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(found)
        assert condition is not None
        assert condition.message.startswith("0/1 nodes are available"), "the scheduler must not see n2"


@pytest.mark.slow
async def test_a_binding_whose_answer_is_lost(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(node("n1", cpu="1"))
        fault(cluster, "1*drop-response", method="Bind")
        await client.create(pod("first", cpu="1"))
        assert await bound(client, "first") == "n1"
        port = cluster.port("scheduler")
        assert "first" in json.dumps(debug_queue(port)), "it is still being bound"
        await eventually(lambda: "first" not in json.dumps(debug_queue(port)))
        # The binding cycle has ended at its deadline, and is not repeated; the node stays full.
        await client.create(pod("second", cpu="1"))
        found = await pod_when(client, "second", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(found)
        assert condition is not None
        assert "Insufficient cpu" in condition.message
