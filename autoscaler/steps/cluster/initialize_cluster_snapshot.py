"""Step: fill the cluster snapshot with nodes and pods, and update the template nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.pods import arrange_by_schedulability, is_expendable
from nominee.autoscaler.planning.objects.readiness import is_ready_and_schedulable
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import PodInfo


def initialize_cluster_snapshot(
    state: AutoscalerState, observation: Observation, deletions: NodeDeletionTracker, result: LoopResult
) -> LoopContext:
    """Return the loop's context: a snapshot with all scheduled and nominated pods that are not expendable."""
    options = state.options
    pods = arrange_by_schedulability(observation.pods, options)
    nodes = sorted(observation.nodes, key=lambda node: node.metadata.name)
    snapshot = ClusterSnapshot(nodes, gates=state.gates, clock=state.clock, devices=state.devices)
    cutoff = options.expendable_pods_priority_cutoff
    scheduled = [pod for pod in pods.scheduled if not is_expendable(pod, cutoff)]
    for info in _pod_infos(state, scheduled):
        snapshot.force_add_pod(info, info.pod.spec.nodeName)
    nominated = [pod for pod in pods.nominated if not is_expendable(pod, cutoff)]
    without_node = [pod for pod in nominated if not snapshot.force_add_pod(pod, pod.status.nominatedNodeName)]
    binding: frozenset[str] = frozenset()
    if options.compat is Compat.FIXED:
        state.nominations.update(nominated, result.at.monotonic)
        binding = state.nominations.binding(result.at.monotonic)
        # H4: a pod nominated to a node that does not exist is pending. If the node has yet to register, the
        # pod fits on the group's upcoming node.
        pods.unschedulable += without_node
    return LoopContext(
        observation=observation,
        deletions=deletions,
        pods=pods,
        snapshot=snapshot,
        templates=state.templates.process(
            state.view, nodes, snapshot, observation.daemon_sets, result.at.now
        ),
        nodes=nodes,
        ready=[node for node in nodes if is_ready_and_schedulable(node)],
        result=result,
        binding=binding,
    )


def _pod_infos(state: AutoscalerState, pods: Iterable[core.Pod]) -> list[PodInfo]:
    """Return the PodInfos of the simulation; unchanged pods keep theirs from loop to loop."""
    infos = []
    for pod in pods:
        former = state.pod_infos.get(pod.metadata.uid)
        infos.append(former if former is not None and former.pod is pod else PodInfo(pod))
    state.pod_infos = {info.uid: info for info in infos}
    return infos
