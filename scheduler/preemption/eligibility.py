"""Decide whether a pod may preempt at all. Source: kube-scheduler 1.36, DefaultPreemption."""

from __future__ import annotations

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.priority import preempts
from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.api.deferred_resize import ResizePreemption, Tracking, is_deferred_resize
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.types import PodInfo

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."


def nominated_node(pod: PodInfo, resizes: ResizePreemption | None) -> str:
    """Return the node where the pod's victims may still be terminating; "" for none.

    For a deferred resize it may be the node of the spec (KEP-5836, Option 4).
    """
    by_spec = resizes is not None and resizes.tracking is Tracking.SPEC_NODE_NAME
    if by_spec and is_deferred_resize(pod.pod):
        return own_node(pod.pod)
    return pod.pod.status.nominatedNodeName


def why_not_eligible(pod: PodInfo, nominated: str, nominated_status: Status, snapshot: Snapshot) -> str:
    """Return the reason, or "" when the pod may preempt.

    A pod that has preempted before waits while its victims terminate on the nominated node, unless the
    filters now reject that node for good. `nominated_status` is what the filters returned for the nominated
    node.
    """
    if not preempts(pod.pod):
        return POLICY_NEVER
    if not nominated or nominated_status.code is Code.UnschedulableAndUnresolvable:
        return ""
    node = snapshot.get(nominated)
    if node is not None:
        for other in node.pods.values():
            if other.priority < pod.priority and is_terminating_by_preemption(other.pod):
                return VICTIM_TERMINATING
    return ""


def is_terminating_by_preemption(pod: core.Pod) -> bool:
    """Return whether the pod is being deleted and was marked by a scheduler as its victim."""
    if not pod.metadata.HasField("deletionTimestamp"):
        return False
    condition = get_condition(pod.status.conditions, DISRUPTION_TARGET)
    return (
        condition is not None and condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    )
