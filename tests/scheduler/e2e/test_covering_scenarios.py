"""KEP-5278, "Integration tests": its covering scenarios in all four combinations of the two gates, at 1.36.

That the field is set before PreBind (and never for a pod without delayed work) and cleared by the binding is
in tests/scheduler/e2e/test_nomination.py for the same four combinations.
"""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, scheduling
from nominee.machinery.client.api_client import Client
from nominee.machinery.wire import codec
from tests.scheduler.e2e.objects import (
    CLAIM_VOLUMES,
    SELECTED_NODE,
    bound,
    claim,
    node,
    pod,
    pod_when,
    provision,
    storage_class,
)
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

VERSION = "--emulated-version=1.36"
combinations = pytest.mark.parametrize(
    ("expects", "clears"),
    [
        (True, True),
        pytest.param(True, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
        (False, False),
    ],
)


async def start(cluster: Cluster, *, expects: bool, clears: bool, scheduler: bool = True) -> None:
    cluster.arguments(
        "apiserver", VERSION, "--disable-admission-plugins=TaintNodesByCondition",
        f"--feature-gates=ClearingNominatedNodeNameAfterBinding={str(clears).lower()}",
    )  # fmt: skip
    cluster.arguments(
        "scheduler", VERSION, f"--feature-gates=NominatedNodeNameForExpectation={str(expects).lower()}"
    )
    await cluster.start("etcd", "apiserver", *(["scheduler"] if scheduler else []))


async def nominate(client: Client, name: str, node_name: str) -> None:
    patch = {"status": {"nominatedNodeName": node_name}}
    await client.patch(kinds.POD, name, "default", patch, subresource="status")


async def left_after_binding(client: Client, name: str) -> str:
    return (await client.get(kinds.POD, name, "default")).status.nominatedNodeName


def priority_class(name: str, value: int) -> scheduling.PriorityClass:
    return codec.from_json(scheduling.PriorityClass, {"metadata": {"name": name}, "value": value})


@combinations
async def test_a_nominated_node_that_fits_is_preferred(cluster: Cluster, expects: bool, clears: bool) -> None:
    """n1 is full of holes, n2 is empty and bigger; the nomination still decides."""
    await start(cluster, expects=expects, clears=clears, scheduler=False)
    async with cluster.client() as client:
        await client.create(node("n1", cpu="2"))
        await client.create(node("n2", cpu="64"))
        await client.create(pod("p", cpu="1"))
        await nominate(client, "p", "n1")
        await cluster.start("scheduler")
        assert await bound(client, "p") == "n1"
        assert await left_after_binding(client, "p") == ("" if clears else "n1")


@combinations
async def test_a_nomination_holds_room_against_equals_and_not_against_the_more_important(
    cluster: Cluster, expects: bool, clears: bool
) -> None:
    await start(cluster, expects=expects, clears=clears)
    async with cluster.client() as client:
        await client.create(priority_class("middle", 500))
        await client.create(priority_class("high", 1000))
        await client.create(node("n1", cpu="4"))
        held = pod("held", cpu="3", priorityClassName="middle", schedulingGates=[{"name": "example.com/g"}])
        await client.create(held)
        await nominate(client, "held", "n1")
        await client.create(pod("equal", cpu="2", priorityClassName="middle"))
        await pod_when(client, "equal", lambda p: _reason(p) == "Unschedulable")
        await client.create(pod("high", cpu="2", priorityClassName="high"))
        assert await bound(client, "high") == "n1"
        assert (await client.get(kinds.POD, "held", "default")).status.nominatedNodeName == "n1"


@combinations
async def test_preemption_overwrites_a_nomination(cluster: Cluster, expects: bool, clears: bool) -> None:
    """Named for a node that cannot take it, the pod gets the node where it preempts."""
    await start(cluster, expects=expects, clears=clears, scheduler=False)
    async with cluster.client() as client:
        await client.create(priority_class("low", 100))
        await client.create(priority_class("high", 1000))
        await client.create(node("n1", cpu="1"))
        await client.create(node("n2", cpu="4"))
        victim = pod("victim", cpu="3", priorityClassName="low", nodeName="n2")
        await client.create(victim)
        await client.create(pod("vip", cpu="2", priorityClassName="high"))
        await nominate(client, "vip", "n1")
        await cluster.start("scheduler")
        await pod_when(client, "vip", lambda p: p.status.nominatedNodeName == "n2")
        await pod_when(client, "victim", lambda p: p.metadata.HasField("deletionTimestamp"))
        await client.delete(kinds.POD, "victim", "default", grace_period_seconds=0)
        assert await bound(client, "vip") == "n2"
        assert await left_after_binding(client, "vip") == ("" if clears else "n2")


@combinations
async def test_another_spot_overwrites_a_nomination(cluster: Cluster, expects: bool, clears: bool) -> None:
    """Named for a node that is too small, a pod with delayed binding work goes elsewhere and says so."""
    await start(cluster, expects=expects, clears=clears, scheduler=False)
    async with cluster.client() as client:
        await client.create(node("small", cpu="1"))
        await client.create(node("big", cpu="8"))
        await client.create(storage_class())
        await client.create(claim())
        await client.create(pod("p", cpu="2", volumes=CLAIM_VOLUMES))
        await nominate(client, "p", "small")
        await cluster.start("scheduler")

        async def selected() -> str:
            found = await client.get(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
            return found.metadata.annotations.get(SELECTED_NODE, "")

        await eventually(selected, lambda name: name == "big")
        waiting = await client.get(kinds.POD, "p", "default")
        # With the gate off no component writes where it goes: the stale name stays until the binding.
        assert waiting.status.nominatedNodeName == ("big" if expects else "small")
        await provision(client)
        assert await bound(client, "p") == "big"
        stale = "big" if expects else "small"
        assert await left_after_binding(client, "p") == ("" if clears else stale)


@combinations
async def test_a_nomination_that_fits_nowhere_is_cleared(
    cluster: Cluster, expects: bool, clears: bool
) -> None:
    await start(cluster, expects=expects, clears=clears, scheduler=False)
    async with cluster.client() as client:
        await client.create(node("n1", cpu="1"))
        await client.create(pod("p", cpu="2"))
        await nominate(client, "p", "n1")
        await cluster.start("scheduler")
        found = await pod_when(client, "p", lambda p: _reason(p) == "Unschedulable")
        assert found.status.nominatedNodeName == ""


def _reason(found: core.Pod) -> str:
    return next((c.reason for c in found.status.conditions if c.type == "PodScheduled"), "")
