"""One loop of the autoscaler: its steps in order, each in a file of `steps/`. Pure.

Source: cluster-autoscaler 1.36, StaticAutoscaler.RunOnce. Where `--compat=fixed` differs, the step names the
hole that it closes (H1 to H4, docs/design/005-autoscaler.md).
"""

from __future__ import annotations

from nominee.autoscaler.orders import LoopError, Orders, RecordEvents
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState
from nominee.autoscaler.steps.cluster.act_on_empty_cluster import act_on_empty_cluster
from nominee.autoscaler.steps.cluster.add_upcoming_nodes import add_upcoming_nodes
from nominee.autoscaler.steps.cluster.check_cluster_health import is_healthy
from nominee.autoscaler.steps.cluster.clean_up_if_required import clean_up_if_required
from nominee.autoscaler.steps.cluster.initialize_cluster_snapshot import initialize_cluster_snapshot
from nominee.autoscaler.steps.cluster.process_pod_list import process_pod_list
from nominee.autoscaler.steps.cluster.refresh import refresh
from nominee.autoscaler.steps.node_groups.delete_created_nodes_with_errors import (
    delete_created_nodes_with_errors,
)
from nominee.autoscaler.steps.node_groups.fix_node_group_size import fix_node_group_size
from nominee.autoscaler.steps.node_groups.remove_old_unregistered_nodes import remove_old_unregistered_nodes
from nominee.autoscaler.steps.node_groups.revert_timed_out_scale_ups import revert_timed_out_scale_ups
from nominee.autoscaler.steps.scaling.find_unneeded import find_unneeded
from nominee.autoscaler.steps.scaling.scale_down import scale_down
from nominee.autoscaler.steps.scaling.scale_up import scale_up
from nominee.autoscaler.steps.scaling.scale_up_to_node_group_min_size import scale_up_to_node_group_min_size
from nominee.autoscaler.steps.scaling.update_soft_deletion_taints import update_soft_deletion_taints
from nominee.autoscaler.steps.write_status import write_status
from nominee.machinery.runtime.clock import Moment


def run_once(state: AutoscalerState) -> Orders[LoopResult]:
    """Run one loop. A failure that ends it early is in the result."""
    result = LoopResult(at=Moment.of(state.clock), activities={"main"})
    try:
        yield from _run_steps(state, result)
    except LoopError as error:
        result.error, result.error_type = error.failure.message, error.failure.type
    yield from RecordEvents(tuple(result.events))
    yield from write_status(state, result)
    return result


def _run_steps(state: AutoscalerState, result: LoopResult) -> Orders[None]:
    observation, deletions = yield from refresh(state, result)
    yield from clean_up_if_required(state, observation, result.events)
    if act_on_empty_cluster(state, observation, result):
        return
    with result.time("updateClusterState", state.clock):
        context = initialize_cluster_snapshot(state, observation, deletions, result)
        state.registry.update_nodes(observation.nodes, state.view, result.at, result.events)
    result.begin_status()
    yield from revert_timed_out_scale_ups(state, context)
    yield from remove_old_unregistered_nodes(state, context)
    if not is_healthy(state, result.events):
        return
    yield from delete_created_nodes_with_errors(state)
    if (yield from fix_node_group_size(state, context)):
        return
    result.activities.add("autoscaling")
    add_upcoming_nodes(state, context)
    with result.time("filterOutSchedulable", state.clock):
        pending = process_pod_list(state, context)
    yield from scale_up(state, context, pending)
    if state.options.scale_down_enabled:
        unneeded = find_unneeded(state, context)
        yield from scale_down(state, context, unneeded)
        yield from update_soft_deletion_taints(state, context)
    if state.options.enforce_node_group_min_size:
        yield from scale_up_to_node_group_min_size(state, context)
