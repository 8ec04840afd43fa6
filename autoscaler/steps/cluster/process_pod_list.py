"""Step: find the pending pods that need a scale-up. Pure.

Source: cluster-autoscaler 1.36, pod list processors and filterOutYoungPods.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects import pods
from nominee.autoscaler.planning.objects.pods import filter_out_young_pods
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core


def process_pod_list(state: AutoscalerState, context: LoopContext) -> list[core.Pod]:
    """Return the pending pods that fit on no node. Those that fit are scheduled in the snapshot."""
    options, snapshot = state.options, context.snapshot
    pending = [*context.pods.unschedulable, *context.pods.unprocessed]
    context.result.unschedulable_pods = len(context.pods.unschedulable)
    context.result.unprocessed_pods = len(context.pods.unprocessed)
    cutoff = options.expendable_pods_priority_cutoff
    pending = [pod for pod in pending if not pods.is_expendable(pod, cutoff)]
    if options.compat is Compat.V1_35:
        pending = _filter_out_nominated(pending, snapshot)
    pending += _currently_drained_pods(state, snapshot)
    pending.sort(key=lambda pod: -pod.spec.priority)
    pending = snapshot.try_schedule_pods(pending, state.pending_hints, lambda _: True, break_on_failure=False)
    state.pending_hints.drop_old()
    pending = [pod for pod in pending if not pods.is_daemon(pod)]
    return filter_out_young_pods(pending, options.new_pod_scale_up_delay, context.result.at.now)


def _filter_out_nominated(pending: Iterable[core.Pod], snapshot: ClusterSnapshot) -> list[core.Pod]:
    """Add nominated pods to their nodes in the snapshot; return the others.

    Up to 1.35 only these pods, which preemption has nominated after a failed attempt, count as nominated.
    """
    return [
        pod
        for pod in pending
        if not pod.status.nominatedNodeName or not snapshot.force_add_pod(pod, pod.status.nominatedNodeName)
    ]


def _currently_drained_pods(state: AutoscalerState, snapshot: ClusterSnapshot) -> list[core.Pod]:
    """Return the pods of nodes that are being drained, as their controllers will create them again."""
    drained = []
    for name in state.deletions.drains():
        for pod in snapshot.pods_on(name):
            is_recreated = not (pods.is_mirror(pod) or pods.is_static(pod) or pods.is_daemon(pod))
            if is_recreated and not pod.metadata.HasField("deletionTimestamp"):
                snapshot.devices.unreserve(pod)  # the new pod has new claims
                drained.append(pods.unbound(pod))
    return drained
