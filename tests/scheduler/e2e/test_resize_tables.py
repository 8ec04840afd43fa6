"""The tables of kube-scheduler 1.37's integration tests of deferred resizes, on real processes.

One API server and one scheduler for all cases of a flavour; each case has nodes of its own. The test acts as
the kubelet (KEP-5836).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from machinery.api import kinds
from machinery.client.api_client import Client
from tests.scheduler.e2e.objects import node
from tests.scheduler.e2e.resizing import (
    create_priorities,
    defer,
    end,
    entry,
    evicted,
    is_evicted,
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

FLAVOURS = pytest.mark.parametrize("flavour", ["kep", "1.37"])


@dataclass(frozen=True)
class Eviction:
    """A full node of 300m, and who goes when a pod grows from 100m to 300m."""

    others: tuple[str, ...]
    evicted: bool
    priority: str = "high"
    policy: tuple[str, ...] = ()


EVICTIONS = {
    "single": Eviction(("200m",), evicted=True),
    "several": Eviction(("100m", "100m"), evicted=True),
    "never": Eviction(("200m",), evicted=False, priority="never"),
    "parked": Eviction((), evicted=False),
    "policy": Eviction(("200m",), evicted=False, policy=("test-operator",)),
}


@FLAVOURS
async def test_who_is_evicted_and_what_is_parked(cluster: Cluster, flavour: str) -> None:
    """TestDeferredResizePodPreemption."""
    await start(cluster, f"--resize-preemption-flavour={flavour}")
    async with cluster.client() as client:
        await create_priorities(client)
        for name, case in EVICTIONS.items():
            await client.create(node(name, cpu="300m"))
            if case.policy:
                await set_policy(client, name, *case.policy)
            victims = [f"{name}-{number}" for number in range(len(case.others))]
            for victim, cpu in zip(victims, case.others, strict=True):
                await run_pod(client, victim, cpu, on=name)
            await run_pod(client, name, "100m", on=name, priority=case.priority)
            await defer(client, name, "300m", allocated="100m")
            if case.evicted:
                for victim in victims:
                    await evicted(client, victim)
        await settle(client, 0)
        for name, case in EVICTIONS.items():
            for number in range(len(case.others)):
                assert await is_evicted(client, f"{name}-{number}") == case.evicted, name
            parks = flavour == "1.37" and name in ("parked", "policy")
            if name == "policy" and flavour == "kep":
                assert entry(cluster, name) == {}  # the scheduler has read the node
            else:
                await waits(cluster, name, "DeferredPodScheduling" if parks else "NodeResourcesFit")
            found = await client.get(kinds.POD, name, "default")
            assert found.status.nominatedNodeName == ""
            assert [c.status for c in found.status.conditions if c.type == "PodScheduled"] == ["True"]


Trigger = Callable[[Client, "Hint", str], Awaitable[Any]]


@dataclass(frozen=True)
class Hint:
    """A deferred pod that does not fit beside a pod of higher priority, and a change that may wake it."""

    change: Trigger
    wakes: bool
    capacity: str = "200m"
    other: str = "200m"
    desired: str = "100m"


async def _grow_node(client: Client, name: str) -> None:
    amounts = {"cpu": "1", "memory": "32Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    await client.patch(kinds.NODE, name, "", {"status": status}, subresource="status")


def resized(which: str, cpu: str) -> Trigger:
    """Resize a pod; the kubelet does at once what is not deferred."""

    async def change(client: Client, hint: Hint, name: str) -> None:
        await resize(client, f"{name}-{which}", cpu)
        if which != "deferred":
            await report(client, f"{name}-{which}", cpu)

    return change


def ended(which: str) -> Trigger:
    return lambda client, hint, name: end(client, f"{name}-{which}")


async def _label(client: Client, hint: Hint, name: str) -> None:
    labels = {"updated-by-test": "true"}
    await client.patch(kinds.POD, f"{name}-other", "default", {"metadata": {"labels": labels}})


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
    async with cluster.client() as client:
        await create_priorities(client)
        for name, hint in HINTS.items():
            await client.create(node(name, cpu=hint.capacity))
            await client.create(node(f"{name}-2", cpu="500m"))
            await run_pod(client, f"{name}-other", hint.other, on=name, priority="high")
            await run_pod(client, f"{name}-far", "200m", on=f"{name}-2", priority="high")
            await run_pod(client, f"{name}-deferred", "50m", on=name)
            await defer(client, f"{name}-deferred", hint.desired, allocated="50m")
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


async def _is_tried_again(cluster: Cluster, name: str, attempts: int) -> None:
    await eventually(lambda: entry(cluster, name), lambda found: found.get("attempts", 0) > attempts)
