"""Delays of scale-down, of the cluster and of each group (`--scale-down-delay-type-local`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.scale_down.cooldowns import Cooldowns
from nominee.autoscaler.result import ScaleDownResult
from nominee.machinery.runtime.clock import FakeClock, to_time
from tests.autoscaler.builders import Started, add_group, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World


def two_groups() -> World:
    """Return a world with a full node in `ng1` and an empty one in `ng2`."""
    world = new_world(FakeClock(), target=1)
    add_group(world, "ng2", target=1)
    node(world, "full")
    pod(world, "large", "1900m", on="full")
    node(world, "empty", group="ng2")
    return world


async def loops(it: Harness, world: World, *, seconds: float, every: float = 30.0) -> list[str]:
    """Run loops for so long; return the names of the nodes whose deletion started."""
    started: list[str] = []
    end = world.clock.now() + seconds
    while world.clock.now() < end:
        await world.clock.advance(every)
        result = await it.run_once()
        started += [*result.empty, *result.drained]
    return started


@pytest.mark.parametrize(("local", "deleted"), [(False, []), (True, ["empty"])])
async def test_a_scale_up_delays_only_its_own_group(local: bool, deleted: list[str]) -> None:
    world = two_groups()
    # The pending pod must not fit on the empty node.
    world.nodes["empty"].spec.taints.add(key="dedicated", value="x", effect="NoSchedule")
    world.groups["ng2"]["template"]["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    pod(world, "waits", "1500m", unschedulable=True)
    it = autoscaler(world, Compat.V1_36, scale_down_delay_type_local=local)
    await it.run_once()
    assert world.increased == {"ng1": 1}
    assert await loops(it, world, seconds=120.0) == deleted


async def test_nodes_of_a_delayed_group_are_no_candidates_and_their_times_do_not_start() -> None:
    world = two_groups()
    it = autoscaler(world, Compat.V1_36, scale_down_delay_type_local=True, scale_down_delay_after_add=300.0)
    it.state.cooldowns.group_scaled_up("ng2", world.clock.monotonic())
    assert await loops(it, world, seconds=290.0, every=29.0) == []
    assert it.state.planner.unneeded_names() == []
    # From 300 s on it is unneeded; it is deleted after the unneeded time of 60 s.
    assert await loops(it, world, seconds=50.0, every=25.0) == []
    assert it.state.planner.unneeded_names() == ["empty"]
    (seconds,) = it.state.planner.unneeded_nodes.durations(world.clock.monotonic()).values()
    assert 0.0 < seconds <= 40.0
    assert await loops(it, world, seconds=60.0) == ["empty"]


@pytest.mark.parametrize(("local", "again"), [(False, ["empty"]), (True, [])])
async def test_a_refused_deletion_delays_its_group(local: bool, again: list[str]) -> None:
    world = two_groups()
    world.fail_delete = ["empty"]
    started: Started = []
    it = autoscaler(
        world, Compat.V1_36, started, scale_down_delay_type_local=local, node_delete_delay_after_taint=0.0
    )
    assert await loops(it, world, seconds=100.0) == ["empty"]
    await started.pop()()
    world.fail_delete = []
    assert await loops(it, world, seconds=60.0) == again


async def test_deletions_delay_their_group() -> None:
    world = two_groups()
    world.targets["ng2"] = 2
    started: Started = []
    it = autoscaler(
        world,
        Compat.V1_36,
        started,
        scale_down_delay_type_local=True,
        scale_down_delay_after_delete=600.0,
        node_delete_delay_after_taint=0.0,
    )
    assert await loops(it, world, seconds=100.0) == ["empty"]
    await started.pop()()
    node(world, "second", group="ng2")
    assert await loops(it, world, seconds=300.0) == []


async def test_pods_that_are_too_new_stop_deletions_of_all_groups() -> None:
    world = two_groups()
    it = autoscaler(world, Compat.V1_36, scale_down_delay_type_local=True)
    await loops(it, world, seconds=30.0)
    new = pod(world, "new", "1900m", unschedulable=True)
    await world.clock.advance(60.0)
    new.metadata.creationTimestamp.CopyFrom(to_time(world.clock.now() - 1.0))
    world.nodes["empty"].spec.taints.add(key="dedicated", value="x", effect="NoSchedule")
    assert (await it.run_once()).scale_down == ScaleDownResult.IN_COOLDOWN


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("event", ["scale-up", "deletion", "failure"])
def test_some_group_waits_until_the_delay_is_over(event: str, local: bool) -> None:
    cooldowns = Cooldowns(
        Options(
            scale_down_delay_type_local=local,
            scale_down_delay_after_add=10.0,
            scale_down_delay_after_delete=10.0,
            scale_down_delay_after_failure=10.0,
        )
    )
    assert not cooldowns.in_some_group(0.0)
    note: dict[str, Callable[[], None]] = {
        "scale-up": lambda: cooldowns.group_scaled_up("g", 0.0) if local else cooldowns.scaled_up(0.0),
        "deletion": lambda: cooldowns.group_deleted("g", 0.0) if local else cooldowns.deletion_started(0.0),
        "failure": lambda: cooldowns.group_failed("g", 0.0) if local else cooldowns.deletion_failed(0.0),
    }
    note[event]()
    assert cooldowns.in_some_group(9.0)
    assert not cooldowns.in_some_group(10.0)
