"""Nominated pods as 1.35, 1.36 and `fixed` treat them (H1 to H4, docs/design/005-autoscaler.md)."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod

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
async def test_h1_a_pod_in_prebind_that_would_fit_elsewhere(compat: Compat, cpu: str, why: str) -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    node(world, "n2")
    pod(world, "busy", "1200m", on="n2")
    pod(world, "binding", cpu, nominated="n1")
    it = autoscaler(world, compat)
    await it.run_once()
    world.clock.set(world.clock.now() + 61)
    result = await it.run_once()
    if why:
        assert (result.empty, result.drained) == ([], [])
        assert str(it.state.planner.unremovable.reasons["n1"]) == why
    else:
        assert [*result.empty, *result.drained] == ["n1"]


async def test_h1_a_nomination_blocks_its_node_until_the_timeout() -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    node(world, "n2")
    pod(world, "busy", "1200m", on="n2")
    pod(world, "binding", "500m", nominated="n1")
    it = autoscaler(world, Compat.FIXED, nomination_timeout=100.0)
    await it.run_once()
    assert it.state.planner.unneeded_names() == []
    world.clock.set(world.clock.now() + 101)
    await it.run_once()
    assert it.state.planner.unneeded_names() == ["n1"]


@pytest.mark.parametrize(("compat", "deleted"), [(Compat.V1_36, ["n1"]), (Compat.FIXED, [])])
async def test_h2_a_nomination_after_the_decision(compat: Compat, deleted: list[str]) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    started: Started = []
    it = autoscaler(world, compat, started, node_delete_delay_after_taint=0.0)
    await it.run_once()
    world.clock.set(world.clock.now() + 61)
    result = await it.run_once()
    assert result.empty == ["n1"]
    pod(world, "late", "1500m", nominated="n1")
    for run in started:
        await run()
    assert world.cloud_deleted == deleted
    if not deleted:
        assert "is nominated to node" in world.events[-1].message
        assert not world.nodes["n1"].spec.unschedulable
        assert "ToBeDeleted" not in str(world.taints())
    assert it.state.deletions.nodes() == frozenset()


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_36, 0), (Compat.FIXED, 1)])
async def test_h3_a_nomination_to_a_node_that_is_not_ready_yet(compat: Compat, ordered: int) -> None:
    """Its room on the node's placeholder must not be given to another pod."""
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    pod(world, "first", "1500m", unschedulable=True)
    it = autoscaler(world, compat)
    assert (await it.run_once()).scale_up.result is ScaleUpResult.SUCCESSFUL
    node(world, "n2", ready=False, age=1.0)
    pod(world, "first", "1500m", nominated="n2")
    pod(world, "second", "1500m", unschedulable=True)
    world.increased = {}
    await it.run_once()
    assert world.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_35, 1), (Compat.V1_36, 0), (Compat.FIXED, 1)])
async def test_h4_a_nomination_to_a_node_that_does_not_exist(compat: Compat, ordered: int) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1500m", nominated="gone", unschedulable=True)
    await autoscaler(world, compat).run_once()
    assert world.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize(("compat", "ordered"), [(Compat.V1_35, 0), (Compat.V1_36, 1), (Compat.FIXED, 1)])
async def test_a_nominated_pod_counts_as_load(compat: Compat, ordered: int) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "binding", "1500m", nominated="n1")
    pod(world, "waits", "1", unschedulable=True)
    await autoscaler(world, compat).run_once()
    assert world.increased == ({"ng1": ordered} if ordered else {})


@pytest.mark.parametrize("compat", ALL)
async def test_the_autoscaler_does_not_change_nominations(compat: Compat) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    before = pod(world, "binding", "500m", nominated="n1")
    it = autoscaler(world, compat)
    await it.run_once()
    world.clock.set(world.clock.now() + 61)
    await it.run_once()
    assert world.pods["default", "binding"] is before
    assert before.status.nominatedNodeName == "n1"
