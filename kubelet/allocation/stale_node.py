"""Whether the cached node object may be too old for the admissions that are due. Pure.

Source: kubelet 1.36, predicateAdmitHandler.generalFilter: where the node's labels are the only failure, the
kubelet reads the node from the API server and checks once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nominee.kubelet.allocation import predicates
from nominee.kubelet.allocation.admission import fails_on_labels_alone
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import TERMINAL_PHASES, PodRecord
from nominee.machinery.api.pb import core


def wants_fresh_node(node: NodeState, pods: Iterable[core.Pod], gone: Collection[str] = ()) -> bool:
    """Return whether one of these pods, or a pending resize, fails on the node's labels alone.

    Of pods that the node has admitted only the resizes count. `gone` are uids of pods that arrive as removed
    with these: one that leaves later only has the node read for nothing.
    """
    queued = [record.pod for uid in node.queue if (record := node.pods.get(uid)) is not None]
    mismatched = [pod for pod in (*pods, *queued) if not predicates.matches_affinity(node, pod)]
    due = [pod for pod in mismatched if pod.status.phase not in TERMINAL_PHASES]
    if not due:
        return False
    others = [record for record in node.active_pods() if record.uid not in gone]
    return any(_fails_on_labels(node, pod, others) for pod in due if pod.metadata.uid not in gone)


def _fails_on_labels(node: NodeState, pod: core.Pod, others: list[PodRecord]) -> bool:
    record = PodRecord(pod, node.desired_of(pod))
    if record.uid not in node.pods:
        return fails_on_labels_alone(node, record, node.allocated(record), "add", others)
    if not node.features.resize or not node.differs(record):
        return False
    return fails_on_labels_alone(node, record, record.desired, "resize", others)
