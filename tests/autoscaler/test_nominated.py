"""Nominated pods: what 1.35 does not see, what 1.36 leaves open, and how `fixed` closes it (H1 to H4)."""

from __future__ import annotations

import pytest

from autoscaler.options import Compat
from autoscaler.planning.scale_up import ScaleUpResult
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, node, pod, world

ALL = (Compat.V1_35, Compat.V1_36, Compat.FIXED)


@pytest.mark.parametrize(
    ("compat", "cpu", "why"),
    [
        (Compat.V1_35, "1100m", ""),
        (Compat.V1_36, "1100m", "NotUnderutilized"),
        (Compat.V1_36, "500m", ""),
        (Compat.FIXED, "1100m", "NotUnderutilized"),
        (Compat.FIXED, "500m", "BlockedByPod(binding/PodBinding)"),
    ],
)
async def test_h1_a_pod_in_prebind_that_could_go_elsewhere(compat: Compat, cpu: str, why: str) -> None:
    found = world(FakeClock(), target=2)
    node(found, "n1")
    node(found, "n2")
    pod(found, "busy", "1200m", on="n2")
    pod(found, "binding", cpu, nominated="n1")
    it = autoscaler(found, compat)
    await it.run_once()
    found.clock.set(found.clock.now() + 61)
    result = await it.run_once()
    if why:
        assert (result.empty, result.drained) == ([], [])
        assert str(it.state.planner.unremovable.reasons["n1"]) == why
    else:
        assert [*result.empty, *result.drained] == ["n1"]


async def test_h1_a_nomination_does_not_hold_its_node_for_ever() -> None:
    found = world(FakeClock(), target=2)
    node(found, "n1")
    node(found, "n2")
    pod(found, "busy", "1200m", on="n2")
    pod(found, "binding", "500m", nominated="n1")
    it = autoscaler(found, Compat.FIXED, nomination_timeout=100.0)
    await it.run_once()
    assert it.state.planner.unneeded() == []
    found.clock.set(found.clock.now() + 101)
    await it.run_once()
    assert it.state.planner.unneeded() == ["n1"]


@pytest.mark.parametrize(("compat", "deleted"), [(Compat.V1_36, ["n1"]), (Compat.FIXED, [])])
async def test_h2_a_nomination_after_the_decision(compat: Compat, deleted: list[str]) -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    started: Started = []
    it = autoscaler(found, compat, started, node_delete_delay_after_taint=0.0)
    await it.run_once()
    found.clock.set(found.clock.now() + 61)
    result = await it.run_once()
    assert result.empty == ["n1"]
    pod(found, "late", "1500m", nominated="n1")
    for run in started:
        await run()
    assert found.cloud_deleted == deleted
    if not deleted:
        assert "is nominated to node" in found.events[-1].message
        assert not found.nodes["n1"].spec.unschedulable
        assert "ToBeDeleted" not in str(found.taints())
    assert it.state.deletions.nodes() == frozenset()


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_36, 0), (Compat.FIXED, 1)])
async def test_h3_a_nomination_to_a_node_that_is_not_ready_yet(compat: Compat, ordered: int) -> None:
    """Its place on the node's stand-in must not be given to another."""
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    pod(found, "first", "1500m", unschedulable=True)
    it = autoscaler(found, compat)
    assert (await it.run_once()).scale_up.result is ScaleUpResult.SUCCESSFUL
    node(found, "n2", ready=False, age=1.0)
    pod(found, "first", "1500m", nominated="n2")
    pod(found, "second", "1500m", unschedulable=True)
    found.increased = {}
    await it.run_once()
    assert found.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_35, 1), (Compat.V1_36, 0), (Compat.FIXED, 1)])
async def test_h4_a_nomination_to_a_node_that_is_gone(compat: Compat, ordered: int) -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    pod(found, "waits", "1500m", nominated="gone", unschedulable=True)
    await autoscaler(found, compat).run_once()
    assert found.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_35, 0), (Compat.V1_36, 1), (Compat.FIXED, 1)])
async def test_a_nominated_pod_keeps_its_place(compat: Compat, ordered: int) -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "binding", "1500m", nominated="n1")
    pod(found, "waits", "1", unschedulable=True)
    await autoscaler(found, compat).run_once()
    assert found.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize("compat", ALL)
async def test_nominations_are_only_read(compat: Compat) -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    before = pod(found, "binding", "500m", nominated="n1")
    it = autoscaler(found, compat)
    await it.run_once()
    found.clock.set(found.clock.now() + 61)
    await it.run_once()
    assert found.pods["default", "binding"] is before
    assert before.status.nominatedNodeName == "n1"
