"""The values of the autoscaler's metrics."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from nominee.autoscaler.options import Compat, Range
from nominee.autoscaler.shell.metrics import Metrics
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, add_group, autoscaler, new_world, node, pod
from tests.autoscaler.test_failures import failed
from tests.autoscaler.world import World


class Watched:
    """An autoscaler with metrics of its own."""

    def __init__(self, world: World, started: Started | None = None, **flags: Any) -> None:
        self.world = world
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        self.autoscaler = autoscaler(world, Compat.V1_36, started, counters=self._metrics, **flags)

    async def loop(self, after: float = 0.0) -> None:
        await self.world.clock.advance(after)
        observation = self.world.observe()
        result = await self.autoscaler.run_once()
        self._metrics.after_loop(self.autoscaler.state, result, observation, 0.25)

    def value(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"cluster_autoscaler_{name}", labels)


def full_cluster() -> World:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    return world


def test_counters_are_exported_from_the_start() -> None:
    it = Watched(full_cluster())
    assert it.value("old_unregistered_nodes_removed_count") == 0
    assert it.value("errors_total", type="transientError") == 0
    assert it.value("failed_scale_ups_total", reason="timeout") == 0
    assert it.value("failed_node_creations_total", reason="timeout") == 0
    assert it.value("scaled_down_nodes_total", reason="unready") == 0
    assert it.value("evicted_pods_total", eviction_result="failed") == 0
    assert it.value("skipped_scale_events_count", direction="up", reason="CpuResourceLimit") == 0


async def test_instances_that_do_not_register() -> None:
    world = full_cluster()
    world.targets["ng1"] = 2
    world.extra_instances["ng1"] = ["late"]
    it = Watched(world)
    await it.loop()
    assert it.value("nodes_count", state="unregistered") == 1
    await it.loop(after=901.0)
    assert world.cloud_deleted == ["late"]
    assert it.value("old_unregistered_nodes_removed_count") == 1


async def test_instances_that_cannot_be_created() -> None:
    world = full_cluster()
    for name in "abc":
        pod(world, name, "1500m", unschedulable=True)
    it = Watched(world)
    await it.loop()
    assert it.value("scaled_up_nodes_total") == 3
    world.failed_instances["ng1"] = [failed("m1"), failed("m2")]
    await it.loop(after=10.0)
    assert it.value("failed_scale_ups_total", reason="STOCKOUT") == 1
    assert it.value("failed_node_creations_total", reason="STOCKOUT") == 2
    assert it.value("node_group_backoff_status", node_group="ng1", reason="STOCKOUT") == 1
    await it.loop(after=301.0)
    assert it.value("node_group_backoff_status", node_group="ng1", reason="STOCKOUT") == 0
    assert it.value("node_group_backoff_status", node_group="ng1", reason="") == 0


async def test_nodes_added_before_a_failed_increase_are_counted() -> None:
    world = new_world(FakeClock(), target=0, minimum=2)
    add_group(world, "ng2", target=0, minimum=1)
    world.fail_increase = ["ng2"]
    it = Watched(world, enforce_node_group_min_size=True)
    await it.loop()
    assert world.increased == {"ng1": 2}
    assert it.value("scaled_up_nodes_total") == 2
    assert it.value("failed_node_creations_total", reason="cloudProviderError") == 1


@pytest.mark.parametrize(
    ("resource", "limits"),
    [("Cpu", {"cores_total": Range(0, 2)}), ("Memory", {"memory_total": Range(0, 4)})],
)
async def test_groups_skipped_because_of_a_limit_of_the_cluster(
    resource: str, limits: dict[str, Any]
) -> None:
    world = full_cluster()
    pod(world, "a", "1500m", unschedulable=True)
    it = Watched(world, **limits)
    await it.loop()
    await it.loop(after=10.0)
    reason = f"{resource}ResourceLimit"
    assert it.value("skipped_scale_events_count", direction="up", reason=reason) == 2
    assert it.value("skipped_scale_events_count", direction="down", reason=reason) == 0


async def test_nodes_kept_by_a_limit_of_the_cluster() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    it = Watched(world, cores_total=Range(2, 10))
    await it.loop()
    await it.loop(after=61.0)
    assert it.value("skipped_scale_events_count", direction="down", reason="CpuResourceLimit") == 1
    assert it.value("unremovable_nodes_count", reason="MinimalResourceLimitExceeded") == 1
    node(world, "n1").metadata.annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    await it.loop(after=10.0)
    assert it.value("skipped_scale_events_count", direction="down", reason="CpuResourceLimit") == 1
    assert it.value("unremovable_nodes_count", reason="MinimalResourceLimitExceeded") == 0


@pytest.mark.parametrize("ready", [True, False])
async def test_scaled_down_nodes_by_reason(ready: bool) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1", ready=ready)
    started: Started = []
    it = Watched(world, started, node_delete_delay_after_taint=0.0, scale_down_unready_time=60.0)
    await it.loop()
    await it.loop(after=61.0)
    await started.pop()()
    assert {name: it.value("scaled_down_nodes_total", reason=name) for name in ("empty", "unready")} == {
        "empty": int(ready),
        "unready": int(not ready),
    }


async def test_taints_by_type() -> None:
    world = full_cluster()
    keys = (
        "ignore-taint.cluster-autoscaler.kubernetes.io/a",
        "startup-taint.cluster-autoscaler.kubernetes.io/b",
        "status-taint.cluster-autoscaler.kubernetes.io/c",
        "node.kubernetes.io/memory-pressure",
        "DeletionCandidateOfClusterAutoscaler",
        "dedicated",
        "example.com/other",
    )
    for key in keys:
        world.nodes["n1"].spec.taints.add(key=key, effect="NoSchedule")
    it = Watched(world)
    await it.loop()
    assert {
        name: it.value("node_taints_count", type=name)
        for name in (
            "ignore-taint.cluster-autoscaler.kubernetes.io/",
            "startup-taint",
            "status-taint",
            "node.kubernetes.io/memory-pressure",
            "DeletionCandidateOfClusterAutoscaler",
            "other",
        )
    } == {
        "ignore-taint.cluster-autoscaler.kubernetes.io/": 1,
        "startup-taint": 1,
        "status-taint": 1,
        "node.kubernetes.io/memory-pressure": 1,
        "DeletionCandidateOfClusterAutoscaler": 1,
        "other": 2,
    }
    node(world, "n1")
    await it.loop(after=10.0)
    assert it.value("node_taints_count", type="other") == 0


async def test_the_heterogeneity_of_an_estimate() -> None:
    world = full_cluster()
    for name, cpu in (("a", "1500m"), ("b", "1500m"), ("c", "1200m")):
        pod(world, name, cpu, unschedulable=True)
    labels = {"instance_type": "large", "cpu_count": "2", "namespace_count": "1"}
    world.nodes["n1"].metadata.labels["node.kubernetes.io/instance-type"] = "large"
    it = Watched(world)
    await it.loop()
    assert it.value("binpacking_heterogeneity_count", **labels) == 1
    assert it.value("binpacking_heterogeneity_sum", **labels) == 2
    assert it.value("binpacking_heterogeneity_bucket", le="1.0", **labels) == 0


async def test_durations_and_last_times_of_the_parts_of_a_loop() -> None:
    world = full_cluster()
    pod(world, "a", "1500m", unschedulable=True)
    it = Watched(world)
    await it.loop()
    now = int(world.clock.now())
    for activity, at in (("main", now), ("autoscaling", now), ("scaleUp", now), ("scaleDown", None)):
        assert it.value("last_activity", activity=activity) == at, activity
    for function in (
        "main", "cloudProviderRefresh", "updateClusterState", "filterOutSchedulable", "scaleUp",
        "findUnneeded",
    ):  # fmt: skip
        assert it.value("function_duration_seconds_count", function=function) == 1, function
        assert it.value("function_duration_quantile_seconds_count", function=function) == 1, function
    assert it.value("function_duration_quantile_seconds_sum", function="main") == 0.25
    del world.pods["default", "a"]
    await it.loop(after=601.0)
    assert it.value("last_activity", activity="scaleUp") == now
    assert it.value("last_activity", activity="scaleDown") == int(world.clock.now())
    assert it.value("function_duration_seconds_count", function="scaleDown") == 1


async def test_pods_of_bypassed_schedulers() -> None:
    world = full_cluster()
    pod(world, "a", "1500m", unschedulable=True)
    for name in ("b", "c"):
        pod(world, name, "1500m").spec.schedulerName = "mine"
    it = Watched(world, bypassed_scheduler_names=("mine",))
    await it.loop()
    assert it.value("unschedulable_pods_count", type="unschedulable") == 1
    assert it.value("unschedulable_pods_count", type="scheduler_unprocessed") == 2


async def test_suspended_nodes_and_an_empty_cluster() -> None:
    world = full_cluster()
    world.nodes["n1"].status.conditions.add(type="Suspended", status="True")
    it = Watched(world, scale_up_from_zero=False)
    await it.loop()
    assert it.value("nodes_count", state="suspended") == 1
    assert it.value("cluster_safe_to_autoscale") == 1
    del world.nodes["n1"]
    await it.loop(after=10.0)
    assert it.value("nodes_count", state="suspended") == 0
    assert it.value("cluster_safe_to_autoscale") == 0
    assert it.value("node_groups_count", node_group_type="autoprovisioned") == 0
