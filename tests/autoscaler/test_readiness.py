"""Nodes that have not started, and clusters without ready nodes."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.observation import CloudView
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult
from nominee.autoscaler.result import ScaleDownResult
from nominee.autoscaler.shell.ports import CloudError
from nominee.autoscaler.steps.cluster.act_on_empty_cluster import NODES_NOT_READY_SECONDS
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, new_world, node, pod

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
async def test_startup_taints_count_on_ready_and_schedulable_nodes(
    ready: bool, cordoned: bool, counted: str
) -> None:
    world = new_world(FakeClock(), target=1)
    starting(node(world, "n1", ready=ready, age=5.0)).spec.unschedulable = cordoned
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    assert getattr(it.state.registry.readiness["ng1"], counted) == ["n1"]


async def test_a_node_that_is_not_ready_is_the_last_choice_for_a_template() -> None:
    """The provider has no template; the group's only node has a startup taint and is not ready."""
    world = new_world(FakeClock(), target=1)
    starting(node(world, "n1", ready=False))
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1500m", unschedulable=True)
    world.groups["ng1"]["template"] = None
    await autoscaler(world, Compat.V1_36).run_once()
    assert world.increased == {"ng1": 1}


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_empty_cluster_is_scaled_up_only_with_scale_up_from_zero(allowed: bool) -> None:
    world = new_world(FakeClock(), target=0)
    pod(world, "waits", "1500m", unschedulable=True)
    it = autoscaler(world, Compat.V1_36, scale_up_from_zero=allowed)
    result = await it.run_once()
    assert world.increased == ({"ng1": 1} if allowed else {})
    if not allowed:
        assert (result.scale_up.result, result.scale_down) == (
            ScaleUpResult.NO_STATUS,
            ScaleDownResult.NO_STATUS,
        )
        assert result.empty_cluster == "Cluster has no nodes."
        assert [(e.type, e.reason, e.message) for e in world.events] == [
            ("Warning", "ClusterUnhealthy", "Cluster has no nodes.")
        ]


async def test_a_loop_on_an_unhealthy_cluster_has_a_status() -> None:
    """Source: cluster-autoscaler 1.36, RunOnce: the status begins when the state of the cluster is known."""
    world = new_world(FakeClock(), target=10)
    for number in range(10):
        node(world, f"n{number}", ready=number == 0)
    result = await autoscaler(world, Compat.V1_36).run_once()
    assert [event.reason for event in world.events] == ["ClusterUnhealthy"]
    assert (result.scale_up.result, result.scale_down) == (
        ScaleUpResult.NOT_TRIED,
        ScaleDownResult.NOT_TRIED,
    )


async def test_a_loop_whose_provider_fails_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")

    async def fails(nodes: object) -> CloudView:
        raise CloudError("no answer")

    monkeypatch.setattr(world, "refresh", fails)
    result = await autoscaler(world, Compat.V1_36).run_once()
    assert result.error
    assert (result.scale_up.result, result.scale_down) == (
        ScaleUpResult.NO_STATUS,
        ScaleDownResult.NO_STATUS,
    )


@pytest.mark.parametrize("change", ["not ready", "cordoned", "starting"])
async def test_a_cluster_without_ready_nodes_is_reported_after_the_startup_time(change: str) -> None:
    world = new_world(FakeClock(), target=1)
    made = node(world, "n1", ready=change != "not ready")
    if change == "starting":
        starting(made)
    made.spec.unschedulable = change == "cordoned"
    pod(world, "waits", "1500m", unschedulable=True)
    it = autoscaler(world, Compat.V1_36, scale_up_from_zero=False)
    result = await it.run_once()
    assert result.empty_cluster == "Cluster has no ready nodes."
    assert (world.increased, world.events) == ({}, [])
    await world.clock.advance(NODES_NOT_READY_SECONDS + 1.0)
    await it.run_once()
    assert [(e.reason, e.message) for e in world.events] == [
        ("ClusterUnhealthy", "Cluster has no ready nodes.")
    ]
    node(world, "n2")
    assert (await it.run_once()).empty_cluster == ""


async def test_unneeded_times_start_again_after_the_cluster_was_empty() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    it = autoscaler(world, Compat.V1_36, scale_up_from_zero=False)
    await it.run_once()
    assert it.state.planner.unneeded_names() == ["n1"]
    node(world, "n1", ready=False)
    await world.clock.advance(30.0)
    await it.run_once()
    assert it.state.planner.unneeded_names() == []
    node(world, "n1")
    await world.clock.advance(31.0)
    assert (await it.run_once()).empty == []


async def test_cordoned_nodes_do_not_count_toward_the_maximum_of_all_nodes() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1").spec.unschedulable = True
    pod(world, "waits", "1500m", unschedulable=True)
    result = await autoscaler(world, Compat.V1_36, max_nodes_total=1).run_once()
    assert result.scale_up.result is not ScaleUpResult.LIMITED
