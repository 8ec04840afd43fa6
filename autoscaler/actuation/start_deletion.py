"""Start of scale-down: taint the nodes, then start their deletions. Pure.

Source: cluster-autoscaler 1.36, actuation's StartDeletion.
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.autoscaler.actuation.eviction import drained_pods
from nominee.autoscaler.actuation.node_deletion import NodeDeletion
from nominee.autoscaler.orders import CleanToBeDeleted, Orders, StartDeletion, TaintToBeDeleted
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.planning.scale_down.planner import NodesToDelete
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.state import AutoscalerState

MARKED = "marked the node as toBeDeleted/unschedulable"


def start_deletion(
    state: AutoscalerState, nodes: NodesToDelete, snapshot: ClusterSnapshot, events: Events
) -> Orders[str]:
    """Taint these nodes and start their deletions, the empty nodes first.

    Return an error if a node cannot be tainted; then no deletion of its kind has started.
    """
    for removals, drain in ((nodes.empty, False), (nodes.drain, True)):
        error = yield from _taint(state, removals, events)
        if error:
            return error
        for removal in removals:
            yield from _start(state, removal, snapshot, events, drain=drain)
    return ""


def _taint(state: AutoscalerState, removals: Sequence[NodeToBeRemoved], events: Events) -> Orders[str]:
    """Taint all these nodes, or none: after a failure the taints are removed again.

    That of the last node is not, though its write may have been done.
    """
    tainted: list[str] = []
    for removal in removals:
        name = removal.node.metadata.name
        failure = yield from TaintToBeDeleted(name)
        if failure is not None:
            state.doubtful_taints.add(name)
            text = f"failed to mark the node as toBeDeleted/unschedulable: {failure}"
            for _ in range(2):  # upstream reports it at two levels
                events.about(removal.node, "Warning", "ScaleDownFailed", text)
            for earlier in tainted:
                if (yield from CleanToBeDeleted(earlier)) is not None:
                    state.doubtful_taints.add(earlier)
            return f"couldn't taint {len(tainted)} nodes with ToBeDeleted"
        events.about(removal.node, "Normal", "ScaleDown", MARKED)
        state.doubtful_taints.discard(name)
        tainted.append(name)
    return ""


def _start(
    state: AutoscalerState,
    removal: NodeToBeRemoved,
    snapshot: ClusterSnapshot,
    events: Events,
    *,
    drain: bool,
) -> Orders[None]:
    name = removal.node.metadata.name
    group = state.view.group(name)
    if group is None:
        return
    state.deletions.start_deletion(name, group.id, drain=drain)
    if drain:
        # Upstream names what will be evicted, not what needs a place: also pods that terminate for long.
        names = ",".join(sorted(pod.metadata.name for pod in drained_pods(snapshot.pods_on(name))))
        text = (
            f"Scale-down: removing node {name}, utilization: {removal.utilization}, "
            f"pods to reschedule: {names}"
        )
        events.status("Normal", "ScaleDown", text)
    else:
        events.status("Normal", "ScaleDownEmpty", f'Scale-down: removing empty node "{name}"')
    deletion = NodeDeletion(state, removal.node, group.id, drain=drain)
    yield from StartDeletion(name, group.id, drain, deletion.run())
