"""The minimum size of a group while nodes of it are being deleted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autoscaler.options import Compat
from autoscaler.planning.observation import CloudView
from machinery.api.pb import core
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, node, pod, world
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World


async def draining(started: Started) -> tuple[World, Harness]:
    """Three nodes, two at least: n1 is being drained, n2 and n3 are full."""
    found = world(FakeClock(), target=3, minimum=2)
    for name in ("n1", "n2", "n3"):
        node(found, name)
    pod(found, "small", "100m", on="n1")
    for name in ("n2", "n3"):
        pod(found, f"large-{name}", "1800m", on=name)
    it = autoscaler(
        found, Compat.V1_36, started, node_delete_delay_after_taint=0.0, unremovable_node_recheck_timeout=0.0
    )
    await it.run_once()
    await found.clock.advance(61.0)
    assert (await it.run_once()).drained == ["n1"]
    for name in ("n2", "n3"):
        del found.pods["default", f"large-{name}"]
    await found.clock.advance(10.0)
    await it.run_once()
    await found.clock.advance(61.0)
    return found, it


async def test_a_drain_in_progress_counts_toward_the_minimum() -> None:
    started: Started = []
    _, it = await draining(started)
    result = await it.run_once()
    assert (result.empty, result.drained) == ([], [])
    assert str(it.state.planner.unremovable.reasons["n3"]) == "NodeGroupMinSizeReached"


async def test_a_deletion_that_ends_after_the_provider_was_asked_counts_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider reported three machines, the drain ends, and two are left: no other node may go."""
    started: Started = []
    found, it = await draining(started)
    refresh = found.refresh

    async def slow(nodes: Sequence[core.Node]) -> CloudView:
        view = await refresh(nodes)
        await started.pop()()
        return view

    monkeypatch.setattr(found, "refresh", slow)
    result = await it.run_once()
    assert (found.cloud_deleted, found.targets) == (["n1"], {"ng1": 2})
    assert (result.empty, result.drained) == ([], [])
    assert started == []
