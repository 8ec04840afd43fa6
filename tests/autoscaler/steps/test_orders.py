"""The orders of steps, read without an executor: in `list(step)` every order succeeds."""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Any

import pytest

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.options import Compat
from nominee.autoscaler.orders import (
    CleanDeletionCandidate,
    CleanToBeDeleted,
    DecreaseTargetSize,
    DeleteNodes,
    ErrorType,
    Failure,
    IncreaseSize,
    LoopError,
    Order,
    StartDeletion,
    TaintDeletionCandidate,
    TaintToBeDeleted,
)
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult
from nominee.autoscaler.result import LoopResult, ScaleDownResult
from nominee.autoscaler.state import AutoscalerState
from nominee.autoscaler.steps.cluster.clean_up_if_required import clean_up_if_required
from nominee.autoscaler.steps.cluster.initialize_cluster_snapshot import initialize_cluster_snapshot
from nominee.autoscaler.steps.node_groups.fix_node_group_size import fix_node_group_size
from nominee.autoscaler.steps.node_groups.remove_old_unregistered_nodes import remove_old_unregistered_nodes
from nominee.autoscaler.steps.scaling.find_unneeded import find_unneeded
from nominee.autoscaler.steps.scaling.scale_down import scale_down
from nominee.autoscaler.steps.scaling.scale_up import scale_up
from nominee.autoscaler.steps.scaling.scale_up_to_node_group_min_size import scale_up_to_node_group_min_size
from nominee.autoscaler.steps.scaling.update_soft_deletion_taints import update_soft_deletion_taints
from nominee.machinery.runtime.clock import FakeClock, Moment
from tests.autoscaler.builders import add_group, autoscaler, new_world, node, pod
from tests.autoscaler.world import World

REFUSED = Failure(ErrorType.CLOUD_PROVIDER, "no capacity")


async def begin(world: World, **flags: Any) -> tuple[AutoscalerState, LoopContext]:
    """Return the state and the context of a loop whose steps up to the snapshot have run."""
    state = autoscaler(world, Compat.V1_36, **flags).state
    state.view = await world.refresh(())
    at = Moment.of(world.clock)
    context = initialize_cluster_snapshot(state, world.observe(), state.deletions, LoopResult(at=at))
    state.registry.update_nodes(context.observation.nodes, state.view, at, context.result.events)
    return state, context


def later(context: LoopContext, seconds: float) -> Moment:
    at = context.result.at
    return Moment(at.now + seconds, at.monotonic + seconds)


def orders_with(step: Generator[Order[Any], Any, Any], *results: object) -> list[Order[Any]]:
    """Return the orders of a step whose first orders have these results."""
    orders, left = [], list(results)
    try:
        order = next(step)
        while True:
            orders.append(order)
            order = step.send(left.pop(0) if left else None)
    except StopIteration:
        return orders


async def test_a_scale_up_increases_the_size_of_a_group() -> None:
    world = new_world(FakeClock(), target=0)
    state, context = await begin(world)
    pending = [pod(world, name, "1500m", unschedulable=True) for name in ("a", "b")]
    assert list(scale_up(state, context, pending)) == [IncreaseSize("ng1", 2)]
    assert context.result.scale_up.result is ScaleUpResult.SUCCESSFUL
    assert state.view.groups["ng1"].target == 2


async def test_a_scale_up_ends_at_the_first_refusal() -> None:
    world = new_world(FakeClock(), target=0, minimum=1)
    add_group(world, "ng2", target=0, minimum=1)
    add_group(world, "ng3", target=0, minimum=1)
    state, context = await begin(world)
    orders = orders_with(scale_up_to_node_group_min_size(state, context), None, REFUSED)
    assert orders == [IncreaseSize("ng1", 1), IncreaseSize("ng2", 1)]
    plan = context.result.scale_up
    assert plan.result is ScaleUpResult.ERROR
    assert [info.group.id for info in plan.scale_ups] == ["ng1"], "what was done stays in the plan"
    backoff = state.registry.backoff
    backed_off = [
        name for name in state.view.groups if backoff.status(name, world.clock.monotonic()) is not None
    ]
    assert backed_off == ["ng2"]


async def started_deletions(
    *results: object, doubtful: Collection[str] = ()
) -> tuple[list[Order[Any]], LoopResult, AutoscalerState]:
    """Return the orders of a scale-down of two empty nodes, whose first orders have these results."""
    world = new_world(FakeClock(), target=2)
    for name in ("n1", "n2"):
        node(world, name)
    state, context = await begin(world)
    state.doubtful_taints.update(doubtful)
    find_unneeded(state, context)
    context.result.at = later(context, 61.0)
    orders = orders_with(scale_down(state, context, find_unneeded(state, context)), *results)
    return orders, context.result, state


async def test_nodes_are_all_tainted_before_a_deletion_starts() -> None:
    orders, result, state = await started_deletions()
    assert [type(order) for order in orders] == [
        TaintToBeDeleted,
        TaintToBeDeleted,
        StartDeletion,
        StartDeletion,
    ]
    assert str(orders[2]) == "StartDeletion(node='n1', group='ng1', drain=False)"
    assert (result.scale_down, result.empty) == (ScaleDownResult.NODE_DELETE_STARTED, ["n1", "n2"])
    assert state.deletions.nodes() == {"n1", "n2"}


async def test_a_taint_that_fails_has_the_others_removed() -> None:
    orders, result, state = await started_deletions(None, Failure(ErrorType.API_CALL, "no"))
    assert orders == [TaintToBeDeleted("n1"), TaintToBeDeleted("n2"), CleanToBeDeleted("n1")]
    assert result.error == "couldn't taint 1 nodes with ToBeDeleted"
    assert state.deletions.nodes() == frozenset()
    assert state.doubtful_taints == {"n2"}


async def test_a_taint_that_could_not_be_removed_is_in_doubt_until_it_is_written_again() -> None:
    failure = Failure(ErrorType.API_CALL, "no")
    _, _, state = await started_deletions(None, failure, failure)
    assert state.doubtful_taints == {"n1", "n2"}
    _, _, state = await started_deletions(doubtful=["n1"])
    assert state.doubtful_taints == set()


async def test_soft_taints_are_limited_in_number() -> None:
    world = new_world(FakeClock(), target=4)
    for name in ("n1", "n2", "n3", "n4"):
        node(world, name)
    pod(world, "busy", "1900m", on="n2")
    await world.taint_deletion_candidate("n2", 0.0)
    state, context = await begin(world, max_bulk_soft_taint_count=2)
    find_unneeded(state, context)
    now = world.clock.now()
    assert list(update_soft_deletion_taints(state, context)) == [
        TaintDeletionCandidate("n1", now),
        CleanDeletionCandidate("n2"),
    ]


async def test_taints_of_an_earlier_process_are_removed_once() -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    node(world, "n2")
    await world.taint_to_be_deleted("n1", 0.0)
    state, context = await begin(world)
    step = clean_up_if_required(state, context.observation, context.result.events)
    assert list(step) == [CleanToBeDeleted("n1")]
    assert list(clean_up_if_required(state, context.observation, context.result.events)) == []


async def test_soft_taints_of_an_earlier_process_are_removed_where_none_are_set() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    await world.taint_deletion_candidate("n1", 0.0)
    for count, orders in ((10, []), (0, [CleanDeletionCandidate("n1")])):
        state, context = await begin(world, max_bulk_soft_taint_count=count)
        assert list(clean_up_if_required(state, context.observation, context.result.events)) == orders
        assert len(context.result.events) == len(orders)
        assert state.is_cleaned_up


async def test_a_taint_that_cannot_be_removed_ends_the_loop() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    await world.taint_to_be_deleted("n1", 0.0)
    state, context = await begin(world)
    with pytest.raises(LoopError, match="no capacity"):
        orders_with(clean_up_if_required(state, context.observation, context.result.events), REFUSED)
    assert not state.is_cleaned_up


async def test_unregistered_nodes_are_deleted_down_to_the_minimum() -> None:
    world = new_world(FakeClock(), target=3, minimum=1)
    world.extra_instances["ng1"] = ["a", "b", "c"]
    state, context = await begin(world)
    context.result.at = later(context, 901.0)
    assert list(remove_old_unregistered_nodes(state, context)) == [DeleteNodes("ng1", ("a", "b"))]
    assert state.view.groups["ng1"].target == 1


async def test_a_target_without_nodes_is_decreased() -> None:
    world = new_world(FakeClock(), target=3)
    node(world, "n1")
    state, context = await begin(world)
    context.result.at = later(context, 901.0)
    assert list(fix_node_group_size(state, context)) == [DecreaseTargetSize("ng1", -2)]


def test_orders_are_values() -> None:
    assert IncreaseSize("a", 1) == IncreaseSize("a", 1)
    with pytest.raises(AttributeError):
        IncreaseSize("a", 1).delta = 2  # type: ignore[misc]
