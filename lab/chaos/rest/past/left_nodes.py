"""The nodes that pods were nominated to and left, as they got other nodes. No I/O.

Until then pods of equal or lower priority may have found no room there. No event wakes them: the scheduler
forgets the nomination when it assumes the pod, and announces the end of one only for pods that still wait.
Source: kube-scheduler 1.36, assume and updatePod of the event handlers; kubernetes/kubernetes#134859.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nominee.lab.chaos.rest.past.pod_writes import pod_writes
from nominee.lab.history.revision import Revision
from nominee.machinery.scheduling.priority import pod_priority


@dataclass(frozen=True, slots=True)
class LeftNode:
    """A node that a pod of this priority was nominated to, and when it was bound to another one."""

    node: str
    priority: int
    time: float


def left_nodes(history: Iterable[Revision]) -> Iterator[LeftNode]:
    """Yield the nodes in the order in which the pods were bound.

    A pod that was nominated to the node of its binding before, as PreBind takes long, left the former one.
    """
    former: dict[str, set[str]] = {}
    for revision, before, pod in pod_writes(history):
        if before is None or before.spec.nodeName:
            continue
        uid, nominated = pod.metadata.uid, before.status.nominatedNodeName
        if not pod.spec.nodeName:
            if nominated and pod.status.nominatedNodeName not in ("", nominated):
                former.setdefault(uid, set()).add(nominated)
            continue
        for node in sorted({*former.pop(uid, ()), nominated} - {"", pod.spec.nodeName}):
            yield LeftNode(node, pod_priority(pod), revision.time)
