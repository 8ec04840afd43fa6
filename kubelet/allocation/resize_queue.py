"""The order in which pending resizes are tried again.

Source: KEP-1287, "Priority of Resize Requests"; kubelet 1.36's sortPendingResizes.
"""

from __future__ import annotations

from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import PodRecord
from nominee.machinery.resources.pod_resources import CPU, MEMORY
from nominee.machinery.resources.qos import GUARANTEED, recorded_qos_class


def push(node: NodeState, uid: str) -> None:
    """Queue a pod; the whole queue is sorted only when the pod was not queued yet."""
    if uid in node.queue:
        return
    node.queue.append(uid)
    if node.features.prioritized_retries:
        sort(node)


def sort(node: NodeState) -> None:
    """Sort the queue by insertion, and drop pods that are gone.

    The comparison is upstream's and no order at all: a resize that does not increase goes before whatever it
    is compared with, so two of them change places at each sort. Insertion is what Go's sort does up to
    twelve elements; the outcome beyond that is not defined upstream.
    """
    pods = [node.pods[uid] for uid in node.queue if uid in node.pods]
    for end in range(1, len(pods)):
        at = end
        while at > 0 and _goes_before(node, pods[at], pods[at - 1]):
            pods[at], pods[at - 1] = pods[at - 1], pods[at]
            at -= 1
    node.queue[:] = [record.uid for record in pods]


def _goes_before(node: NodeState, one: PodRecord, other: PodRecord) -> bool:
    if not is_increasing(node, one):
        return True
    if not is_increasing(node, other):
        return False
    priority, other_priority = one.pod.spec.priority, other.pod.spec.priority
    if priority != other_priority:
        return priority > other_priority
    guaranteed = recorded_qos_class(one.pod) == GUARANTEED
    if guaranteed != (recorded_qos_class(other.pod) == GUARANTEED):
        return guaranteed
    if one.pending is None:
        return False
    if other.pending is None:
        return True
    return (one.pending.since, one.pending.order) < (other.pending.since, other.pending.order)


def is_increasing(node: NodeState, record: PodRecord) -> bool:
    """Return whether the pod as a whole would get more cpu or memory than it is allocated."""
    if not node.differs(record):
        return False
    old = node.requests(record, node.allocated(record))
    new = node.requests(record, record.desired)
    return any(new.get(name, 0) > old.get(name, 0) for name in (CPU, MEMORY))
