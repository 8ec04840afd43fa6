"""The utilization of a node, and its format in events."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.scale_down.utilization import Utilization, utilization
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.types import NodeInfo, PodInfo
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


@pytest.mark.parametrize(
    ("label", "gpus", "used", "text"),
    [
        pytest.param(False, "", "", "{0.75 0 0 0 cpu 0.75}", id="no GPUs"),
        pytest.param(False, "4", "", "{0 0 0 0 nvidia.com/gpu 0}", id="GPUs that no pod uses"),
        pytest.param(False, "4", "3", "{0 0 0.75 0 nvidia.com/gpu 0.75}", id="GPUs in use"),
        pytest.param(False, "0", "", "{0.75 0 0 0 cpu 0.75}", id="none is left"),
        pytest.param(True, "", "", "{0 0 0 0 nvidia.com/gpu 0}", id="GPUs that are not ready"),
    ],
)
def test_gpus_alone_count_on_a_node_that_has_some(label: bool, gpus: str, used: str, text: str) -> None:
    world = new_world(FakeClock(), target=1)
    made = node(world, "n1")
    if label:
        made.metadata.labels["nominee.dev/gpu"] = "large"
    if gpus:
        made.status.allocatable["nvidia.com/gpu"].string = gpus
    busy = pod(world, "busy", "1500m", on="n1")
    if used:
        busy.spec.containers[0].resources.requests["nvidia.com/gpu"].string = used
    info = NodeInfo("n1", made)
    info.add_pod(PodInfo(busy))
    assert str(utilization(info, 0.0)) == text
