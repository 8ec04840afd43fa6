"""Step: read the cluster and the node groups. Pure."""

from __future__ import annotations

from dataclasses import replace

from nominee.autoscaler.orders import Failure, LoopError, Observe, Orders, RefreshCloudProvider
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.readiness import filter_out_unready
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment, from_time


def refresh(state: AutoscalerState, result: LoopResult) -> Orders[tuple[Observation, NodeDeletionTracker]]:
    """Return the cluster, and the deletions in progress before the provider was asked for the sizes.

    Nodes that have not started yet are not ready in it.

    Raises:
        LoopError: the provider cannot be reached.
    """
    observation = yield from Observe()
    if isinstance(observation, Failure):
        raise LoopError(observation)
    result.at = Moment.of(state.clock)  # the order may have been delayed
    deletions = state.deletions.snapshot()
    with result.time("cloudProviderRefresh", state.clock):
        view = yield from RefreshCloudProvider(observation.nodes)
    if isinstance(view, Failure):
        raise LoopError(view)
    state.view = view
    state.devices.refresh()
    state.lacking_devices = frozenset(
        node.metadata.name for node in observation.nodes if _lacks_devices(state, node, result.at.now)
    )
    nodes = filter_out_unready(observation.nodes, state.lacking_devices)
    return replace(observation, nodes=nodes), deletions


def _lacks_devices(state: AutoscalerState, node: core.Node, now: float) -> bool:
    """Report whether a new node has yet to publish devices; it has `--max-node-startup-time` for that."""
    if from_time(node.metadata.creationTimestamp) + state.options.max_node_startup_time <= now:
        return False
    name = node.metadata.name
    group = state.view.group_of_node.get(name, "")
    return state.templates.lacks_devices(group, state.devices.slices.of_node(name))
