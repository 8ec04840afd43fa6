"""Pods keep the places that earlier simulations of removals found for them."""

from __future__ import annotations

from nominee.autoscaler.options import Compat
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness


async def test_an_autoscaler_that_starts_finds_room_that_a_hint_hides() -> None:
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
        world.pods.pop(("default", "leaver"), None)  # now small fits beside filler, and large beside other
        await world.clock.advance(1.0)
    assert found == [[], ["n2"], ["n2"]]
    assert it.state.planner.unneeded_names() == []
    after = autoscales()
    await after.run_once()
    assert after.state.planner.unneeded_names() == ["n2"]
