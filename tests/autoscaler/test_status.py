"""The status ConfigMap's document."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.node_groups.status import (
    ERROR_CHARACTERS_MAX,
    ScaleDownCandidates,
    StatusBuilder,
    initializing,
    timestamp,
)
from nominee.machinery.runtime.clock import FakeClock, Moment, rfc3339
from tests.autoscaler.builders import add_group, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World

NOW = 1_787_392_272.5
NEVER = {"lastProbeTime": None, "lastTransitionTime": None}
NO_NODES = {
    "registered": {
        "total": 0, "ready": 0, "notStarted": 0, "suspended": 0,
        "unready": {"total": 0, "resourceUnready": 0},
    },
    "longUnregistered": 0,
    "unregistered": 0,
}  # fmt: skip


def document(builder: StatusBuilder, it: Harness, world: World) -> Any:
    """Return the status as a client parses it from the ConfigMap."""
    candidates = ScaleDownCandidates(
        nodes=it.state.planner.unneeded_names(), planned_at=it.state.planner.updated_at
    )
    text = yaml.safe_dump(
        dict(builder.build(it.state.registry, it.state.view, candidates, Moment.of(world.clock)))
    )
    return yaml.safe_load(text)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (NOW, "2026-08-22 09:51:12.5 +0000 UTC"),
        (NOW - 0.5, "2026-08-22 09:51:12 +0000 UTC"),
        (NOW + 0.000001, "2026-08-22 09:51:12.500001 +0000 UTC"),
    ],
)
def test_times_have_gos_format(now: float, text: str) -> None:
    assert timestamp(now) == text


@pytest.mark.parametrize("message", ["", "Cluster has no nodes."])
def test_before_the_first_loop_all_probe_times_are_null(message: str) -> None:
    text = yaml.safe_dump(dict(initializing(NOW, message)))
    assert "&" not in text, "no aliases"
    assert yaml.safe_load(text) == {
        "time": "2026-08-22 09:51:12.5 +0000 UTC",
        "autoscalerStatus": "Initializing",
        "clusterWide": {"health": {**NEVER, "nodeCounts": NO_NODES}, "scaleUp": NEVER, "scaleDown": NEVER},
        **({"message": message} if message else {}),
    }


async def test_a_complete_document() -> None:
    world = new_world(FakeClock(), target=1)
    add_group(world, "empty", target=0)
    node(world, "n1")
    it, builder, began = autoscaler(world, Compat.V1_36), StatusBuilder(), rfc3339(world.clock.now())
    await it.run_once()
    document(builder, it, world)
    await world.clock.advance(10.0)
    await it.run_once()
    now = rfc3339(world.clock.now())
    times = {"lastProbeTime": now, "lastTransitionTime": began}
    counts = {
        "registered": {**NO_NODES["registered"], "total": 1, "ready": 1},  # type: ignore[dict-item]
        "longUnregistered": 0,
        "unregistered": 0,
    }
    candidates = {"status": "CandidatesPresent", "candidates": 1, **times}
    assert document(builder, it, world) == {
        "time": timestamp(world.clock.now()),
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {"status": "Healthy", "nodeCounts": counts, **times},
            "scaleUp": {"status": "NoActivity", **times},
            "scaleDown": candidates,
        },
        "nodeGroups": [
            {
                "name": "ng1",
                "health": {
                    "status": "Healthy", "nodeCounts": counts, **times,
                    "cloudProviderTarget": 1, "minSize": 0, "maxSize": 10,
                },
                "scaleUp": {"status": "NoActivity", "backoffInfo": {}, **times},
                "scaleDown": candidates,
            },
            {
                "name": "empty",
                "health": {
                    "status": "Healthy", "nodeCounts": NO_NODES, **NEVER,
                    "cloudProviderTarget": 0, "minSize": 0, "maxSize": 10,
                },
                "scaleUp": {"status": "NoActivity", "backoffInfo": {}, **NEVER},
                "scaleDown": {"status": "NoCandidates", **times},
            },
        ],
    }  # fmt: skip


async def test_backoff_info_of_a_group_that_is_backed_off_and_not_scaling_up() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1500m", unschedulable=True)
    world.fail_increase = ["ng1"]
    it, builder = autoscaler(world, Compat.V1_36), StatusBuilder()
    await it.run_once()
    (group,) = document(builder, it, world)["nodeGroups"]
    assert group["scaleUp"]["status"] == "Backoff"
    assert group["scaleUp"]["backoffInfo"] == {
        "errorCode": "cloudProviderError",
        "errorMessage": "failed to increase node group size: no capacity",
    }
    # Another scale-up of the group is still in progress.
    it.state.registry.register_scale_up("ng1", 1, world.clock.now())
    world.targets["ng1"] = 2
    await world.clock.advance(1.0)
    await it.run_once()
    (group,) = document(builder, it, world)["nodeGroups"]
    assert (group["scaleUp"]["status"], group["scaleUp"]["backoffInfo"]) == ("InProgress", {})


async def test_a_long_error_is_truncated() -> None:
    world = new_world(FakeClock(), target=0)
    it, builder = autoscaler(world, Compat.V1_36), StatusBuilder()
    await it.run_once()
    it.state.registry.backoff.backoff("ng1", world.clock.monotonic(), code="x", message="a" * 600)
    (group,) = document(builder, it, world)["nodeGroups"]
    message = group["scaleUp"]["backoffInfo"]["errorMessage"]
    assert message == "a" * (ERROR_CHARACTERS_MAX - 11) + "<truncated>"


async def test_an_unhealthy_group_has_no_backoff_info() -> None:
    world = new_world(FakeClock(), target=9)
    node(world, "n1")
    it, builder = autoscaler(world, Compat.V1_36), StatusBuilder()
    it.state.registry.backoff.backoff("ng1", world.clock.monotonic(), code="x", message="y")
    await it.run_once()
    (group,) = document(builder, it, world)["nodeGroups"]
    assert group["health"]["status"] == "Unhealthy"
    assert (group["scaleUp"]["status"], group["scaleUp"]["backoffInfo"]) == ("Unhealthy", {})


async def test_suspended_and_deleted_nodes_are_counted() -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1").status.conditions.add(type="Suspended", status="True")
    node(world, "n2").spec.taints.add(key="ToBeDeletedByClusterAutoscaler", value="0", effect="NoSchedule")
    it, builder = autoscaler(world, Compat.V1_36), StatusBuilder()
    it.state.deletions.start_deletion("n2", "ng1", drain=False)
    await it.run_once()
    counts = document(builder, it, world)["clusterWide"]["health"]["nodeCounts"]["registered"]
    assert (counts["total"], counts["ready"], counts["suspended"], counts["beingDeleted"]) == (2, 0, 1, 1)
    assert it.state.registry.is_node_group_healthy("ng1")
