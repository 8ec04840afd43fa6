"""The minimum size of a group while nodes of it are being deleted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.observation import CloudView
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World


async def draining(started: Started) -> tuple[World, Harness]:
    """Return a group of three nodes and minimum size two: n1 is being drained, n2 and n3 are full."""
    world = new_world(FakeClock(), target=3, minimum=2)
    for name in ("n1", "n2", "n3"):
        node(world, name)
    pod(world, "small", "100m", on="n1")
    for name in ("n2", "n3"):
        pod(world, f"large-{name}", "1800m", on=name)
    it = autoscaler(
        world, Compat.V1_36, started, node_delete_delay_after_taint=0.0, unremovable_node_recheck_timeout=0.0
    )
    await it.run_once()
    await world.clock.advance(61.0)
    assert (await it.run_once()).drained == ["n1"]
    for name in ("n2", "n3"):
        del world.pods["default", f"large-{name}"]
    await world.clock.advance(10.0)
    await it.run_once()
    await world.clock.advance(61.0)
    return world, it


async def test_a_drain_in_progress_counts_toward_the_minimum() -> None:
    started: Started = []
    _, it = await draining(started)
    result = await it.run_once()
    assert (result.empty, result.drained) == ([], [])
    assert str(it.state.planner.unremovable.reasons["n3"]) == "NodeGroupMinSizeReached"


async def test_a_deletion_that_ends_after_the_provider_was_asked_counts_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider reported three nodes, then the drain ends: no other node may be deleted."""
    started: Started = []
    world, it = await draining(started)
    refresh = world.refresh

    async def slow(nodes: Sequence[core.Node]) -> CloudView:
        view = await refresh(nodes)
        await started.pop()()
        return view

    monkeypatch.setattr(world, "refresh", slow)
    result = await it.run_once()
    assert (world.cloud_deleted, world.targets) == (["n1"], {"ng1": 2})
    assert (result.empty, result.drained) == ([], [])
    assert started == []
