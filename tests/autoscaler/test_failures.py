"""Instances that cannot be created, and the back-offs of their groups."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.observation import CREATING, Instance
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, new_world, node, pod
from tests.autoscaler.world import World

OUT_OF_RESOURCES, OTHER = 1, 99


def failed(name: str, *, error_class: int = OUT_OF_RESOURCES, message: str = "none left") -> Instance:
    return Instance(
        id=name, state=CREATING, error_class=error_class, error_code="STOCKOUT", error_message=message
    )


def messages(world: World, reason: str) -> list[str]:
    return [event.message for event in world.events if event.reason == reason]


def full_cluster(*waiting: str) -> World:
    """Return a world with one full node, and pending pods that need a node each."""
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    for name in waiting:
        pod(world, name, "1500m", unschedulable=True)
    return world


async def test_a_fulfilled_request_does_not_end_the_back_off_of_its_group() -> None:
    """Two instances are requested; one cannot be created, the other becomes a node."""
    world = full_cluster("a", "b")
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    assert world.increased == {"ng1": 2}
    world.failed_instances["ng1"] = [failed("m2")]
    node(world, "n2", age=0.0)
    pod(world, "a", "1500m", on="n2")
    await world.clock.advance(10.0)
    await it.run_once()
    assert (world.targets, world.cloud_deleted) == ({"ng1": 2}, ["m2"])
    for _ in range(2):
        world.increased = {}
        await world.clock.advance(10.0)
        result = await it.run_once()
        assert "ng1" not in it.state.registry.scale_ups.requests, "the request is fulfilled"
        assert world.increased == {}, "the group is still backed off"
        assert [reasons for _, reasons in result.scale_up.remaining] == [
            {"ng1": ("in backoff after failed scale-up",)}
        ]


async def test_a_failure_after_a_success_doubles_the_back_off() -> None:
    world = full_cluster("a", "b")
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    world.failed_instances["ng1"] = [failed("m2")]
    await world.clock.advance(10.0)
    await it.run_once()
    node(world, "n2", age=0.0)
    pod(world, "a", "1500m", on="n2")
    await world.clock.advance(301.0)
    await it.run_once()
    assert world.targets == {"ng1": 3}, "the back-off is over: b's node is requested again"
    world.failed_instances["ng1"] = [failed("m3")]
    await world.clock.advance(10.0)
    await it.run_once()
    failure = it.state.registry.backoff.status("ng1", world.clock.monotonic())
    assert failure is not None
    assert failure.duration == 600.0


async def test_an_instance_that_failed_before_a_restart_is_deleted_without_a_back_off() -> None:
    world = full_cluster()
    world.targets["ng1"] = 2
    world.failed_instances["ng1"] = [failed("m2")]
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    assert world.cloud_deleted == ["m2"]
    assert messages(world, "ScaleUpFailed") == []
    assert it.state.registry.backoff.status("ng1", world.clock.monotonic()) is None
    pod(world, "a", "1500m", unschedulable=True)
    await world.clock.advance(10.0)
    await it.run_once()
    assert world.increased == {"ng1": 1}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([failed("m2")], "1 nodes to group ng1 due to OutOfResource.STOCKOUT; source errors: none left"),
        (
            [failed("m2", error_class=OTHER)],
            "1 nodes to group ng1 due to Other.STOCKOUT; source errors: none left",
        ),
        (
            [failed(f"m{index}", message=f"zone {index}") for index in range(4)],
            "4 nodes to group ng1 due to OutOfResource.STOCKOUT; "
            "source errors: zone 0, zone 1, zone 2, zone 3, ...",
        ),
    ],
)
async def test_the_event_names_the_class_and_the_source_errors(rows: list[Instance], text: str) -> None:
    world = full_cluster(*"abcde")
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    world.failed_instances["ng1"] = list(rows)
    await world.clock.advance(10.0)
    await it.run_once()
    assert messages(world, "ScaleUpFailed") == [f"Failed adding {text}"]


async def test_the_back_off_after_a_refused_increase_has_the_prefix_of_the_error() -> None:
    world = full_cluster("a")
    world.fail_increase = ["ng1"]
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    assert messages(world, "FailedToScaleUpGroup") == ["Scale-up failed for group ng1: no capacity"]
    failure = it.state.registry.backoff.status("ng1", world.clock.monotonic())
    assert failure is not None
    assert failure.error_message == "failed to increase node group size: no capacity"
    assert failure.error_code == "cloudProviderError"
