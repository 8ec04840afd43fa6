"""Machines that cannot be created, and the back-offs of their groups."""

from __future__ import annotations

import pytest

from autoscaler.options import Compat
from autoscaler.planning.observation import CREATING, Instance
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, node, pod, world
from tests.autoscaler.world import World

OUT_OF_RESOURCES, OTHER = 1, 99


def failed(name: str, *, error_class: int = OUT_OF_RESOURCES, message: str = "none left") -> Instance:
    return Instance(
        id=name, state=CREATING, error_class=error_class, error_code="STOCKOUT", error_message=message
    )


def messages(found: World, reason: str) -> list[str]:
    return [event.message for event in found.events if event.reason == reason]


def full_cluster(*waiting: str) -> World:
    """One full node, and pods that need a node each."""
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    for name in waiting:
        pod(found, name, "1500m", unschedulable=True)
    return found


async def test_a_fulfilled_request_does_not_end_the_back_off_of_its_group() -> None:
    """Two machines are ordered; one cannot be created, the other becomes a node."""
    found = full_cluster("a", "b")
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    assert found.increased == {"ng1": 2}
    found.failed_instances["ng1"] = [failed("m2")]
    node(found, "n2", age=0.0)
    pod(found, "a", "1500m", on="n2")
    await found.clock.advance(10.0)
    await it.run_once()
    assert (found.targets, found.cloud_deleted) == ({"ng1": 2}, ["m2"])
    for _ in range(2):
        found.increased = {}
        await found.clock.advance(10.0)
        result = await it.run_once()
        assert "ng1" not in it.state.registry.scale_ups.requests, "the request is fulfilled"
        assert found.increased == {}, "the group is still backed off"
        assert [reasons for _, reasons in result.scale_up.remaining] == [
            {"ng1": ("in backoff after failed scale-up",)}
        ]


async def test_a_failure_after_a_success_doubles_the_back_off() -> None:
    found = full_cluster("a", "b")
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    found.failed_instances["ng1"] = [failed("m2")]
    await found.clock.advance(10.0)
    await it.run_once()
    node(found, "n2", age=0.0)
    pod(found, "a", "1500m", on="n2")
    await found.clock.advance(301.0)
    await it.run_once()
    assert found.targets == {"ng1": 3}, "the back-off is over: b's machine is ordered again"
    found.failed_instances["ng1"] = [failed("m3")]
    await found.clock.advance(10.0)
    await it.run_once()
    failure = it.state.registry.backoff.status("ng1", found.clock.now())
    assert failure is not None
    assert failure.duration == 600.0


async def test_a_machine_that_failed_before_a_restart_is_removed_without_a_back_off() -> None:
    found = full_cluster()
    found.targets["ng1"] = 2
    found.failed_instances["ng1"] = [failed("m2")]
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    assert found.cloud_deleted == ["m2"]
    assert messages(found, "ScaleUpFailed") == []
    assert it.state.registry.backoff.status("ng1", found.clock.now()) is None
    pod(found, "a", "1500m", unschedulable=True)
    await found.clock.advance(10.0)
    await it.run_once()
    assert found.increased == {"ng1": 1}


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
    found = full_cluster(*"abcde")
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    found.failed_instances["ng1"] = list(rows)
    await found.clock.advance(10.0)
    await it.run_once()
    assert messages(found, "ScaleUpFailed") == [f"Failed adding {text}"]


async def test_the_back_off_after_a_refused_order_has_the_prefix_of_the_error() -> None:
    found = full_cluster("a")
    found.fail_increase = ["ng1"]
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    assert messages(found, "FailedToScaleUpGroup") == ["Scale-up failed for group ng1: no capacity"]
    failure = it.state.registry.backoff.status("ng1", found.clock.now())
    assert failure is not None
    assert failure.error_message == "failed to increase node group size: no capacity"
    assert failure.error_code == "cloudProviderError"
