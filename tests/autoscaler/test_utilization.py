"""The utilization of a node, and its format in events."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.scale_down.utilization import Utilization
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, new_world, node, pod


@pytest.mark.parametrize(
    ("used", "text"),
    [
        (Utilization(share=0.05, resource="cpu", cpu=0.05, memory=0.0), "{0.05 0 0 0 cpu 0.05}"),
        (Utilization(share=1.4, resource="cpu", cpu=1.4, memory=1.0), "{1.4 1 0 0 cpu 1.4}"),
        (Utilization(share=0.00003, resource="memory", memory=0.00003), "{0 3e-05 0 0 memory 3e-05}"),
        (Utilization(share=0.1234567891234, resource="cpu", cpu=0.1234567891234),
         "{0.1234567891234 0 0 0 cpu 0.1234567891234}"),
    ],
)  # fmt: skip
def test_it_is_formatted_as_go_formats_the_structure(used: Utilization, text: str) -> None:
    assert str(used) == text


async def test_the_event_of_a_drain_has_the_utilization() -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    node(world, "n2")
    pod(world, "busy", "1200m", on="n2")
    moved = pod(world, "p", "100m", on="n1")
    moved.spec.containers[0].resources.requests["memory"].string = "1Gi"
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    await world.clock.advance(61.0)
    await it.run_once()
    (message,) = [event.message for event in world.events if "removing node" in event.message]
    assert message == (
        "Scale-down: removing node n1, utilization: {0.05 0.25 0 0 memory 0.25}, pods to reschedule: p"
    )
