"""Pods keep the places that earlier simulations of removals found for them."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness


@pytest.mark.parametrize(("late", "held"), [("100m", ["n2"]), ("200m", [])])
async def test_a_node_is_held_by_hints_if_an_autoscaler_that_starts_finds_room(
    late: str, held: list[str]
) -> None:
    """Without its hint small fits beside filler, and large beside other unless late is too large."""
    world, started = new_world(FakeClock(), target=3), Started()
    for name in ("n0", "n1", "n2"):
        node(world, name)
    for name, cpu, on in (
        ("filler", "1500m", "n0"),
        ("leaver", "500m", "n0"),
        ("other", "1300m", "n1"),
        ("small", "200m", "n2"),
        ("large", "600m", "n2"),
    ):
        pod(world, name, cpu, on=on)

    def autoscales() -> Harness:
        return autoscaler(world, Compat.V1_36, started, unremovable_node_recheck_timeout=0.0)

    it, found = autoscales(), list[list[str]]()
    for _ in range(3):
        await it.run_once()
        found.append(it.state.planner.held_by_hints())
        world.pods.pop(("default", "leaver"), None)
        pod(world, "late", late, on="n1")
        await world.clock.advance(1.0)
    assert found == [[], held, held]
    assert it.state.planner.unneeded_names() == []
    after = autoscales()
    await after.run_once()
    assert after.state.planner.unneeded_names() == held
