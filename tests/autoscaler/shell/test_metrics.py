"""The autoscaler's metrics are upstream's, and each is set."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from autoscaler.options import Compat, Range
from autoscaler.shell.metrics import Metrics
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, add_group, autoscaler, node, pod, world
from tests.autoscaler.test_failures import failed
from tests.autoscaler.world import World


class Watched:
    """An autoscaler with metrics of its own."""

    def __init__(self, found: World, started: Started | None = None, **flags: Any) -> None:
        self.world = found
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        self.autoscaler = autoscaler(found, Compat.V1_36, started, counters=self._metrics, **flags)

    async def loop(self, after: float = 0.0) -> None:
        await self.world.clock.advance(after)
        observation = self.world.observe()
        result = await self.autoscaler.run_once()
        self._metrics.after_loop(self.autoscaler.state, result, observation, 0.25)

    def value(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"cluster_autoscaler_{name}", labels)


def full_cluster() -> World:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    return found


def test_counters_begin_at_zero() -> None:
    it = Watched(full_cluster())
    assert it.value("old_unregistered_nodes_removed_count") == 0
    assert it.value("errors_total", type="transientError") == 0
    assert it.value("failed_scale_ups_total", reason="timeout") == 0
    assert it.value("failed_node_creations_total", reason="timeout") == 0
    assert it.value("scaled_down_nodes_total", reason="unready") == 0
    assert it.value("evicted_pods_total", eviction_result="failed") == 0
    assert it.value("skipped_scale_events_count", direction="up", reason="CpuResourceLimit") == 0


async def test_machines_that_never_became_nodes() -> None:
    found = full_cluster()
    found.targets["ng1"] = 2
    found.extra_instances["ng1"] = ["late"]
    it = Watched(found)
    await it.loop()
    assert it.value("nodes_count", state="unregistered") == 1
    await it.loop(after=901.0)
    assert found.cloud_deleted == ["late"]
    assert it.value("old_unregistered_nodes_removed_count") == 1


async def test_machines_that_could_not_be_created() -> None:
    found = full_cluster()
    for name in "abc":
        pod(found, name, "1500m", unschedulable=True)
    it = Watched(found)
    await it.loop()
    assert it.value("scaled_up_nodes_total") == 3
    found.failed_instances["ng1"] = [failed("m1"), failed("m2")]
    await it.loop(after=10.0)
    assert it.value("failed_scale_ups_total", reason="STOCKOUT") == 1
    assert it.value("failed_node_creations_total", reason="STOCKOUT") == 2
    assert it.value("node_group_backoff_status", node_group="ng1", reason="STOCKOUT") == 1
    await it.loop(after=301.0)
    assert it.value("node_group_backoff_status", node_group="ng1", reason="STOCKOUT") == 0
    assert it.value("node_group_backoff_status", node_group="ng1", reason="") == 0


async def test_nodes_that_scaled_up_before_an_order_failed_are_counted() -> None:
    found = world(FakeClock(), target=0, minimum=2)
    add_group(found, "ng2", target=0, minimum=1)
    found.fail_increase = ["ng2"]
    it = Watched(found, enforce_node_group_min_size=True)
    await it.loop()
    assert found.increased == {"ng1": 2}
    assert it.value("scaled_up_nodes_total") == 2
    assert it.value("failed_node_creations_total", reason="cloudProviderError") == 1


@pytest.mark.parametrize(
    ("resource", "limits"),
    [("Cpu", {"cores_total": Range(0, 2)}), ("Memory", {"memory_total": Range(0, 4)})],
)
async def test_groups_that_a_limit_of_the_cluster_forbids_to_grow(
    resource: str, limits: dict[str, Any]
) -> None:
    found = full_cluster()
    pod(found, "a", "1500m", unschedulable=True)
    it = Watched(found, **limits)
    await it.loop()
    await it.loop(after=10.0)
    reason = f"{resource}ResourceLimit"
    assert it.value("skipped_scale_events_count", direction="up", reason=reason) == 2
    assert it.value("skipped_scale_events_count", direction="down", reason=reason) == 0


async def test_nodes_that_a_limit_of_the_cluster_keeps() -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    it = Watched(found, cores_total=Range(2, 10))
    await it.loop()
    await it.loop(after=61.0)
    assert it.value("skipped_scale_events_count", direction="down", reason="CpuResourceLimit") == 1
    assert it.value("unremovable_nodes_count", reason="MinimalResourceLimitExceeded") == 1
    node(found, "n1").metadata.annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    await it.loop(after=10.0)
    assert it.value("skipped_scale_events_count", direction="down", reason="CpuResourceLimit") == 1
    assert it.value("unremovable_nodes_count", reason="MinimalResourceLimitExceeded") == 0


@pytest.mark.parametrize("ready", [True, False])
async def test_nodes_that_were_removed_and_why(ready: bool) -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1", ready=ready)
    started: Started = []
    it = Watched(found, started, node_delete_delay_after_taint=0.0, scale_down_unready_time=60.0)
    await it.loop()
    await it.loop(after=61.0)
    await started.pop()()
    assert {name: it.value("scaled_down_nodes_total", reason=name) for name in ("empty", "unready")} == {
        "empty": int(ready),
        "unready": int(not ready),
    }


async def test_taints_by_type() -> None:
    found = full_cluster()
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
        found.nodes["n1"].spec.taints.add(key=key, effect="NoSchedule")
    it = Watched(found)
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
    node(found, "n1")
    await it.loop(after=10.0)
    assert it.value("node_taints_count", type="other") == 0


async def test_each_estimate_is_observed_by_the_variety_of_its_pods() -> None:
    found = full_cluster()
    for name, cpu in (("a", "1500m"), ("b", "1500m"), ("c", "1200m")):
        pod(found, name, cpu, unschedulable=True)
    labels = {"instance_type": "large", "cpu_count": "2", "namespace_count": "1"}
    found.nodes["n1"].metadata.labels["node.kubernetes.io/instance-type"] = "large"
    it = Watched(found)
    await it.loop()
    assert it.value("binpacking_heterogeneity_count", **labels) == 1
    assert it.value("binpacking_heterogeneity_sum", **labels) == 2
    assert it.value("binpacking_heterogeneity_bucket", le="1.0", **labels) == 0


async def test_durations_and_times_of_the_parts_of_a_loop() -> None:
    found = full_cluster()
    pod(found, "a", "1500m", unschedulable=True)
    it = Watched(found)
    await it.loop()
    now = int(found.clock.now())
    for activity, at in (("main", now), ("autoscaling", now), ("scaleUp", now), ("scaleDown", None)):
        assert it.value("last_activity", activity=activity) == at, activity
    for function in (
        "main", "cloudProviderRefresh", "updateClusterState", "filterOutSchedulable", "scaleUp",
        "findUnneeded",
    ):  # fmt: skip
        assert it.value("function_duration_seconds_count", function=function) == 1, function
        assert it.value("function_duration_quantile_seconds_count", function=function) == 1, function
    assert it.value("function_duration_quantile_seconds_sum", function="main") == 0.25
    del found.pods["default", "a"]
    await it.loop(after=601.0)
    assert it.value("last_activity", activity="scaleUp") == now
    assert it.value("last_activity", activity="scaleDown") == int(found.clock.now())
    assert it.value("function_duration_seconds_count", function="scaleDown") == 1


async def test_pods_that_no_scheduler_has_tried() -> None:
    found = full_cluster()
    pod(found, "a", "1500m", unschedulable=True)
    for name in ("b", "c"):
        pod(found, name, "1500m").spec.schedulerName = "mine"
    it = Watched(found, bypassed_scheduler_names=("mine",))
    await it.loop()
    assert it.value("unschedulable_pods_count", type="unschedulable") == 1
    assert it.value("unschedulable_pods_count", type="scheduler_unprocessed") == 2


async def test_suspended_nodes_and_an_empty_cluster() -> None:
    found = full_cluster()
    found.nodes["n1"].status.conditions.add(type="Suspended", status="True")
    it = Watched(found, scale_up_from_zero=False)
    await it.loop()
    assert it.value("nodes_count", state="suspended") == 1
    assert it.value("cluster_safe_to_autoscale") == 1
    del found.nodes["n1"]
    await it.loop(after=10.0)
    assert it.value("nodes_count", state="suspended") == 0
    assert it.value("cluster_safe_to_autoscale") == 0
    assert it.value("node_groups_count", node_group_type="autoprovisioned") == 0
