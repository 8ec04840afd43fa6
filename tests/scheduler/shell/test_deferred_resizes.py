"""A failed cycle of a deferred resize, and its evictions, as the API server sees them (KEP-5836)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime import failpoints
from nominee.scheduler.framework.resize_preemption import Flavour, ResizePreemption, Tracking
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.process import debug
from tests.scheduler.resizing import FITS, GATE, V1_37, growing, node, pod, settled
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi

GATES = {GATE: True}
GROWING = ObjectKey("default", "growing")


def is_deleted(api: FakeApi, name: str) -> bool:
    return ("delete", None) in api.writes(name)


def cluster() -> FakeApi:
    api = FakeApi()
    for obj in (node("node1", "300m"), pod("victim", "200m"), growing()):
        api.put(obj)
    return api


@pytest.mark.parametrize("flavour", list(Flavour))
async def test_a_failed_cycle_leaves_the_status_alone(flavour: Flavour) -> None:
    """ "Failure Handler Adjustments for Deferred Pods": requeued, no condition, no nomination, an event."""
    api = cluster()
    api.hold["delete"] = anyio.Event()
    options = ResizePreemption(flavour)
    async with running(api, version=V1_37, gates=GATES, resize_preemption=options) as parts:
        await api.until(lambda: bool(parts.queue.unschedulable()))
        [queued] = parts.queue.unschedulable()
        assert (queued.pod_info.name, queued.unschedulable_plugins) == ("growing", {"NodeResourcesFit"})
        assert parts.nominator.node_of("uid-growing") == ""
        if flavour is Flavour.KEP:
            await api.until(lambda: any(name == "growing" for _, name, _ in api.events))
    assert api.writes("growing") == []
    status = api.pod("growing").status
    assert [(c.type, c.status) for c in status.conditions] == [
        ("PodScheduled", "True"), ("PodResizePending", "True"),
    ]  # fmt: skip
    assert status.nominatedNodeName == ""
    messages = [(reason, note) for reason, name, note in api.events if name == "growing"]
    failed = ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
    assert messages == ([failed] if flavour is Flavour.KEP else [])


async def test_a_victim_ends_gracefully_and_the_resize_is_parked() -> None:
    """ "Pod Priority, Graceful Termination, ...": DELETE without a grace period of its own."""
    api = cluster()
    async with running(api, version=V1_37, gates=GATES) as parts:
        await api.until(lambda: is_deleted(api, "victim"))
        assert [verb for verb, _ in api.writes("victim")] == ["patch/status", "delete"]
        assert "PreemptionByScheduler" in str(api.writes("victim")[0])
        await api.until(lambda: FITS in str(parts.deps.attempts.of(GROWING)[-1].document()))
        assert [info.pod_info.name for info in parts.queue.unschedulable()] == ["growing"]
        api.put(settled())
        await api.until(lambda: parts.queue.get(GROWING) is None)
        assert not len(parts.queue.in_flight)


async def test_a_policy_that_comes_during_the_cycle_counts() -> None:
    """ "Version Skew Strategy": the scheduler reads the node when it evaluates the resize."""
    api = cluster()
    failpoints.arm("scheduler.cycle.before", "pause")
    async with running(api, version=V1_37, gates=GATES) as parts:
        await api.until(lambda: "uid-growing" in parts.queue.in_flight)
        api.put(node("node1", "300m", owners=("a.io/b",)))
        await api.until(lambda: bool(parts.deps.resizes and not parts.deps.resizes.is_queued("uid-growing")))
        failpoints.arm("scheduler.cycle.before", "off")
        await api.until(lambda: not len(parts.queue.in_flight))
        assert parts.queue.get(GROWING) is None
    assert not is_deleted(api, "victim")


async def test_the_nomination_is_written_and_cleared() -> None:
    """ "Option 3: Reuse NominatedNodeName"."""
    api = cluster()
    options = ResizePreemption(tracking=Tracking.NOMINATED_NODE_NAME)
    async with running(api, version=V1_37, gates=GATES, resize_preemption=options):
        await api.until(lambda: api.pod("growing").status.nominatedNodeName == "node1")
        assert api.pod("growing").status.conditions[0].status == "True"
        done = settled()
        done.status.nominatedNodeName = "node1"
        api.put(done)
        await api.until(lambda: api.pod("growing").status.nominatedNodeName == "")
    assert all("conditions" not in body["status"] for _, body in api.writes("growing"))


async def test_a_nomination_that_a_former_scheduler_left_is_cleared() -> None:
    """ "Option 3: Reuse NominatedNodeName", after a restart."""
    api = FakeApi()
    left = settled()
    left.status.nominatedNodeName = "node1"
    api.put(node("node1", "300m"))
    api.put(left)
    options = ResizePreemption(tracking=Tracking.NOMINATED_NODE_NAME)
    async with running(api, version=V1_37, gates=GATES, resize_preemption=options):
        await api.until(lambda: api.pod("growing").status.nominatedNodeName == "")


async def test_explain_names_the_victims_of_a_resize_and_what_forbids_it() -> None:
    api = cluster()
    api.put(node("node1", "300m", owners=("a.io/b",)))
    async with running(api, version=V1_37, gates=GATES) as parts:
        await api.until(lambda: parts.informers.pods.get("growing", "default") is not None)

        def explained() -> Any:
            found = parts.informers.pods.get("growing", "default")
            assert found is not None
            options = parts.scheduler.features.resources
            return debug.explain(parts.scheduler, GROWING, PodInfo(found, options), nodes_max=9)[
                "explanation"
            ]

        forbidden = explained()
        assert "podPreemptionPolicy" in forbidden["deferredResize"]["preemptionDisabledBy"]
        assert forbidden["preemption"]["victims"] == []
        api.hold["delete"] = anyio.Event()
        api.put(node("node1", "300m"))
        await api.until(lambda: not explained()["deferredResize"]["preemptionDisabledBy"])
        assert explained()["preemption"]["victims"] == ["default/victim"]
