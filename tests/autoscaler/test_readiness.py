"""Nodes that have not started, and clusters without ready nodes."""

from __future__ import annotations

import pytest

from autoscaler.options import Compat
from autoscaler.planning.scale_up import ScaleUpResult
from autoscaler.steps.act_on_empty_cluster import NODES_NOT_READY_SECONDS
from machinery.api.pb import core
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, node, pod, world

STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/agent"


def starting(made: core.Node) -> core.Node:
    made.spec.taints.add(key=STARTUP, effect="NoSchedule")
    return made


@pytest.mark.parametrize(
    ("ready", "cordoned", "counted"),
    [
        pytest.param(True, False, "not_started", id="ready"),
        pytest.param(False, False, "not_started", id="not ready"),
        pytest.param(True, True, "ready", id="ready and cordoned"),
    ],
)
async def test_startup_taints_are_looked_for_on_ready_and_schedulable_nodes(
    ready: bool, cordoned: bool, counted: str
) -> None:
    found = world(FakeClock(), target=1)
    starting(node(found, "n1", ready=ready, age=5.0)).spec.unschedulable = cordoned
    it = autoscaler(found, Compat.V1_36)
    await it.run_once()
    assert getattr(it.state.registry.readiness["ng1"], counted) == ["n1"]


async def test_a_starting_node_that_is_not_ready_is_a_template_where_there_is_no_other() -> None:
    """The provider knows no template; the group's only node has a startup taint and is not ready."""
    found = world(FakeClock(), target=1)
    starting(node(found, "n1", ready=False))
    pod(found, "full", "1900m", on="n1")
    pod(found, "waits", "1500m", unschedulable=True)
    found.groups["ng1"]["template"] = None
    await autoscaler(found, Compat.V1_36).run_once()
    assert found.increased == {"ng1": 1}


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_empty_cluster_is_scaled_up_only_where_that_is_allowed(allowed: bool) -> None:
    found = world(FakeClock(), target=0)
    pod(found, "waits", "1500m", unschedulable=True)
    it = autoscaler(found, Compat.V1_36, scale_up_from_zero=allowed)
    result = await it.run_once()
    assert found.increased == ({"ng1": 1} if allowed else {})
    if not allowed:
        assert result.scale_up.result is ScaleUpResult.NOT_TRIED
        assert result.empty_cluster == "Cluster has no nodes."
        assert [(e.type, e.reason, e.message) for e in found.events] == [
            ("Warning", "ClusterUnhealthy", "Cluster has no nodes.")
        ]


@pytest.mark.parametrize("change", ["not ready", "cordoned", "starting"])
async def test_a_cluster_without_ready_nodes_is_reported_when_they_had_time_to_start(change: str) -> None:
    found = world(FakeClock(), target=1)
    made = node(found, "n1", ready=change != "not ready")
    if change == "starting":
        starting(made)
    made.spec.unschedulable = change == "cordoned"
    pod(found, "waits", "1500m", unschedulable=True)
    it = autoscaler(found, Compat.V1_36, scale_up_from_zero=False)
    result = await it.run_once()
    assert result.empty_cluster == "Cluster has no ready nodes."
    assert (found.increased, found.events) == ({}, [])
    await found.clock.advance(NODES_NOT_READY_SECONDS + 1.0)
    await it.run_once()
    assert [(e.reason, e.message) for e in found.events] == [
        ("ClusterUnhealthy", "Cluster has no ready nodes.")
    ]
    node(found, "n2")
    assert (await it.run_once()).empty_cluster == ""


async def test_unneeded_times_start_again_after_a_cluster_was_empty() -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    it = autoscaler(found, Compat.V1_36, scale_up_from_zero=False)
    await it.run_once()
    assert it.state.planner.unneeded() == ["n1"]
    node(found, "n1", ready=False)
    await found.clock.advance(30.0)
    await it.run_once()
    assert it.state.planner.unneeded() == []
    node(found, "n1")
    await found.clock.advance(31.0)
    assert (await it.run_once()).empty == []


async def test_cordoned_nodes_do_not_count_toward_the_maximum_of_all_nodes() -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1").spec.unschedulable = True
    pod(found, "waits", "1500m", unschedulable=True)
    result = await autoscaler(found, Compat.V1_36, max_nodes_total=1).run_once()
    assert result.scale_up.result is not ScaleUpResult.LIMITED
