"""The tables of kube-scheduler 1.37's integration tests of deferred resizes, on real processes, over REST.

One API server and one scheduler for all cases of a table and a flavour; each case has nodes of its own. The
test acts as the kubelet (KEP-5836). Upstream's file: deferred_resize_preemption_test.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from nominee.machinery.api import kinds
from tests.scheduler.e2e.objects import bound, node, pod
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
    resize,
    run_pod,
    set_policy,
    settle,
    start,
    waits,
)
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.rest_client import ObjectClient, RestClient

FLAVOURS = pytest.mark.parametrize("flavour", ["kep", "1.37"])


@dataclass(frozen=True, slots=True)
class Other:
    """A pod beside the one that grows; `protected`: a budget allows no disruption of it."""

    cpu: str
    priority: str = "low"
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """A full node of 300m, and which of the others are evicted when a pod grows from 100m."""

    others: tuple[Other, ...]
    evicted: tuple[int, ...] = ()
    to: str = "300m"
    priority: str = "high"
    policy: tuple[str, ...] = ()


EVICTIONS = {
    "single": Eviction((Other("200m"),), evicted=(0,)),
    "several": Eviction((Other("100m"), Other("100m")), evicted=(0, 1)),
    "never": Eviction((Other("200m"),), priority="never"),
    "parked": Eviction(()),
    "policy": Eviction((Other("200m"),), policy=("test-operator",)),
    # Not in that test's table, but in the KEP's text.
    "equal": Eviction((Other("200m", "high"),)),
    "lowest": Eviction((Other("100m", "low"), Other("100m", "middle")), evicted=(0,), to="200m"),
    "budget": Eviction((Other("100m"), Other("100m", protected=True)), evicted=(0,), to="200m"),
    "violated": Eviction((Other("100m"), Other("100m", protected=True)), evicted=(0, 1)),
}


@FLAVOURS
async def test_who_is_evicted_and_what_is_parked(cluster: Cluster, flavour: str) -> None:
    """TestDeferredResizePodPreemption."""
    await start(cluster, f"--resize-preemption-flavour={flavour}")
    client = RestClient.of(cluster)
    await create_priorities(client)
    await client.create(budget({"protected": "true"}))
    for name, case in EVICTIONS.items():
        await client.create(node(name, cpu="300m"))
        if case.policy:
            await set_policy(client, name, *case.policy)
        for number, other in enumerate(case.others):
            await run_pod(client, f"{name}-{number}", other.cpu, on=name, priority=other.priority)
            if other.protected:
                await label(client, f"{name}-{number}", protected="true")
    await settle(client, 0)
    for name, case in EVICTIONS.items():
        await run_pod(client, name, "100m", on=name, priority=case.priority)
        await defer(client, name, case.to, allocated="100m")
        for number in case.evicted:
            await evicted(client, f"{name}-{number}")
    await settle(client, 1)
    for name, case in EVICTIONS.items():
        gone = [n for n in range(len(case.others)) if await is_evicted(client, f"{name}-{n}")]
        assert tuple(gone) == case.evicted, name
        parks = flavour == "1.37" and name in ("parked", "policy")
        if name == "policy" and flavour == "kep":
            assert entry(cluster, name) == {}  # the scheduler has read the node
        else:
            await waits(cluster, name, "DeferredPodScheduling" if parks else "NodeResourcesFit")
        found = await client.get(kinds.POD, name, "default")
        assert found.status.nominatedNodeName == ""
        assert [c.status for c in found.status.conditions if c.type == "PodScheduled"] == ["True"]


Trigger = Callable[[ObjectClient, "Hint", str], Awaitable[Any]]


@dataclass(frozen=True)
class Hint:
    """A deferred pod that does not fit beside a pod of higher priority, and a change that may wake it."""

    change: Trigger
    wakes: bool
    capacity: str = "200m"
    other: str = "200m"
    desired: str = "100m"


async def _grow_node(client: ObjectClient, name: str) -> None:
    amounts = {"cpu": "1", "memory": "32Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    await client.patch(kinds.NODE, name, "", {"status": status}, subresource="status")


def resized(which: str, cpu: str) -> Trigger:
    """Resize a pod; the kubelet does at once what is not deferred."""

    async def change(client: ObjectClient, hint: Hint, name: str) -> None:
        await resize(client, f"{name}-{which}", cpu)
        if which != "deferred":
            await report(client, f"{name}-{which}", cpu)

    return change


def ended(which: str) -> Trigger:
    return lambda client, hint, name: end(client, f"{name}-{which}")


async def _label(client: ObjectClient, hint: Hint, name: str) -> None:
    await label(client, f"{name}-other", updated="true")


HINTS = {
    "far-pod-down": Hint(resized("far", "100m"), wakes=False),
    "pod-down": Hint(resized("other", "100m"), wakes=True),
    "far-pod-gone": Hint(ended("far"), wakes=False),
    "pod-gone": Hint(ended("other"), wakes=True),
    "far-pod-up": Hint(resized("far", "300m"), wakes=False, capacity="300m", desired="200m"),
    "pod-up": Hint(resized("other", "250m"), wakes=True, capacity="300m", desired="200m"),
    "label": Hint(_label, wakes=False),
    "far-node-grows": Hint(lambda client, hint, name: _grow_node(client, f"{name}-2"), wakes=False),
    "node-grows": Hint(lambda client, hint, name: _grow_node(client, name), wakes=True),
    "own-down": Hint(resized("deferred", "80m"), wakes=True),
    "own-up": Hint(resized("deferred", "450m"), wakes=True, capacity="500m", desired="400m"),
    "far-policy": Hint(lambda client, hint, name: set_policy(client, f"{name}-2", "a.io/b"), wakes=False),
}


@FLAVOURS
async def test_what_wakes_a_deferred_resize(cluster: Cluster, flavour: str) -> None:
    """TestDeferredResizeQueueingHints."""
    await start(cluster, f"--resize-preemption-flavour={flavour}")
    client = RestClient.of(cluster)
    await create_priorities(client)
    for name, hint in HINTS.items():
        await _fill(client, name, capacity=hint.capacity, other=hint.other, desired=hint.desired)
    await settle(client, 0)
    before = {name: (await waits(cluster, f"{name}-deferred"))["attempts"] for name in HINTS}
    for name, hint in HINTS.items():
        await hint.change(client, hint, name)
    await settle(client, 1)
    for name, hint in HINTS.items():
        found = entry(cluster, f"{name}-deferred")
        if hint.wakes:
            await _is_tried_again(cluster, f"{name}-deferred", before[name])
        else:
            assert found["place"] == "unschedulable", name
            assert found["attempts"] == before[name], name


async def _fill(
    client: ObjectClient, name: str, *, capacity: str = "200m", other: str = "200m", desired: str = "100m"
) -> None:
    """A deferred pod that does not fit beside a pod of higher priority, and a pod on a second node."""
    await client.create(node(name, cpu=capacity))
    await client.create(node(f"{name}-2", cpu="500m"))
    await run_pod(client, f"{name}-other", other, on=name, priority="high")
    await run_pod(client, f"{name}-far", "200m", on=f"{name}-2", priority="high")
    await run_pod(client, f"{name}-deferred", "50m", on=name)
    await defer(client, f"{name}-deferred", desired, allocated="50m")


async def _is_tried_again(cluster: Cluster, name: str, attempts: int) -> None:
    await eventually(lambda: entry(cluster, name), lambda found: found.get("attempts", 0) > attempts)


@FLAVOURS
async def test_the_policy_of_the_node_changes(cluster: Cluster, flavour: str) -> None:
    """TestDeferredResizeNodePreemptionPolicy; in the KEP's text the pod leaves the queue meanwhile."""
    await start(cluster, f"--resize-preemption-flavour={flavour}")
    client = RestClient.of(cluster)
    await create_priorities(client)
    for name in ("set", "cleared"):
        await _fill(client, name)
    tried = {name: (await waits(cluster, f"{name}-deferred"))["attempts"] for name in ("set", "cleared")}
    await set_policy(client, "set", "test-policy")
    await set_policy(client, "cleared", "test-policy")
    await settle(client, 0)
    if flavour == "kep":
        assert entry(cluster, "set-deferred") == entry(cluster, "cleared-deferred") == {}
        tried["cleared"] = 0  # it enters the queue as a new pod
    else:
        assert entry(cluster, "set-deferred")["attempts"] == tried["set"]
        # A policy that clears wakes the pods that the policy has rejected.
        await resize(client, "cleared-deferred", "110m")
        await waits(cluster, "cleared-deferred", "DeferredPodScheduling")
        tried["cleared"] = entry(cluster, "cleared-deferred")["attempts"]
    await set_policy(client, "cleared")
    await _is_tried_again(cluster, "cleared-deferred", tried["cleared"])
    await waits(cluster, "cleared-deferred")


@FLAVOURS
async def test_what_enters_and_leaves_the_queue(cluster: Cluster, flavour: str) -> None:
    """TestDeferredResizeQueueingHandlers: AddPod on startup, UpdatePod, DeletePod."""
    await start(cluster, f"--resize-preemption-flavour={flavour}", scheduler=False)
    client = RestClient.of(cluster)
    await create_priorities(client)
    for name in ("early", "late"):
        await client.create(node(name, cpu="200m", labels={"name": name}))
        await run_pod(client, name, "100m", on=name)
        await run_pod(client, f"{name}-other", "100m", on=name, priority="high")
    await defer(client, "early", "150m", allocated="100m")
    await cluster.start("scheduler")
    await waits(cluster, "early")
    assert entry(cluster, "late") == {}
    await defer(client, "late", "150m", allocated="100m")
    await waits(cluster, "late")
    await report(client, "late", "100m", PodResizePending="Deferred", PodResizePreemptionDisabled="x")
    if flavour == "kep":
        await _is_not_queued(cluster, "late")
    else:
        await settle(client, 0)
    await report(client, "late", "100m", PodResizePending="Deferred")
    await waits(cluster, "late")
    await report(client, "late", "150m")
    await _is_not_queued(cluster, "late")
    await end(client, "early")
    await _is_not_queued(cluster, "early")
    # The cache has forgotten it, too: a new pod takes its room.
    await client.create(pod("new", cpu="100m", nodeSelector={"name": "early"}))
    assert await bound(client, "new") == "early"


async def _is_not_queued(cluster: Cluster, name: str) -> None:
    await eventually(lambda: entry(cluster, name), lambda found: not found)
