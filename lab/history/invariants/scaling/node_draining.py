"""The autoscaler drains a node before it deletes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import (
    DELETED_BY_OTHERS,
    ComponentSettings,
    Evidence,
    ScaleDown,
)
from nominee.lab.history.invariants.checking.pods import (
    ended_pod,
    is_expendable,
    is_terminal,
    same_pod_before,
)
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.objects import controller_of, is_terminating
from nominee.machinery.api.pb import core

_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
_MIRROR: Final = "kubernetes.io/config.mirror"
_DAEMON: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
BOUND_SECONDS: Final = 10.0
"""How long before the taint a pod must have been bound, so that the autoscaler has seen it."""


@dataclass(frozen=True, slots=True)
class _Undrained:
    """A node that was deleted with its taint, and a pod that ran there."""

    binding: Revision
    taint: Revision
    newest: Revision
    deletion: Revision


class NodeDraining(Checker):
    """Looks at the deletion of each node for pods that run there and were not evicted.

    The autoscaler taints the node, evicts its pods and deletes it when they are gone or terminate; where an
    eviction fails it takes the taint back. Pods of DaemonSets, those that say so by an annotation,
    mirror pods and expendable ones may stay. Another client may delete a node that has the taint, so only
    those count that the autoscaler has asked the cloud for.
    Source: cluster-autoscaler 1.36, core/scaledown/actuation (DrainNode, deleteNodesAsync; the snapshot of
    createSnapshot has no expendable pods), utils/pod (IsDaemonSetPod).
    """

    about = Invariant(
        name="nodes-are-drained",
        description="A node that the autoscaler deletes has no running pod that was not evicted, but for "
        "pods of DaemonSets, mirror pods and those below --expendable-pods-priority-cutoff.",
        checks="nodes that the autoscaler deleted",
        exceptions={
            "bound-late": f"the pod was bound less than {BOUND_SECONDS:.0f} s before the taint, or after "
            "it: the autoscaler may not have seen it",
            **DELETED_BY_OTHERS,
        },
    )
    kinds = frozenset({POD, NODE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._bound: dict[str, dict[str, Revision]] = {}
        self._newest: dict[str, Revision] = {}
        self._taints: dict[str, Revision] = {}
        self._undrained: list[_Undrained] = []

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod, a taint or a deletion."""
        yield from ()
        if revision.kind is POD:
            self._observe_pod(revision)
            return
        node = revision.after(NODE)
        if node is None:
            self._note_deletion(revision)
        elif any(taint.key == _TAINT for taint in node.spec.taints):
            self._taints.setdefault(revision.name, revision)
        else:
            self._taints.pop(revision.name, None)

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._bound.get(ended.spec.nodeName, {}).pop(ended.metadata.uid, None)
            self._newest.pop(ended.metadata.uid, None)
        if pod is None or not pod.spec.nodeName:
            return
        uid = pod.metadata.uid
        self._newest[uid] = revision
        before = same_pod_before(revision)
        if before is None or not before.spec.nodeName:
            self._bound.setdefault(pod.spec.nodeName, {})[uid] = revision

    def _note_deletion(self, revision: Revision) -> None:
        taint, bound = self._taints.pop(revision.name, None), self._bound.get(revision.name, {})
        if taint is None or revision.is_state:
            return
        self.checked += 1
        for uid, binding in bound.items():
            newest = self._newest[uid]
            pod = newest.after(POD)
            if pod is None or not _must_be_evicted(pod, self.settings.scale_down):
                continue
            if self.served_time.between(binding.time, taint.time) < BOUND_SECONDS:
                self.allow("bound-late")
            else:
                self._undrained.append(_Undrained(binding, taint, newest, revision))

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Check the nodes that were deleted with a pod."""
        for each in self._undrained:
            deletion, newest = each.deletion, each.newest
            if not evidence.may_be_scaled_down(deletion.name, each.taint.revision, deletion.revision):
                self.allow("deleted-by-others")
                continue
            yield self.violation(
                f"the autoscaler deleted the node while {newest.subject} ran there, and did not evict it",
                each.binding,
                each.taint,
                newest,
                deletion,
            )


def _must_be_evicted(pod: core.Pod, options: ScaleDown | None) -> bool:
    owner, annotations = controller_of(pod), pod.metadata.annotations
    if is_terminal(pod) or is_terminating(pod) or is_expendable(pod, options) or _MIRROR in annotations:
        return False
    return (owner is None or owner.kind != "DaemonSet") and annotations.get(_DAEMON) != "true"
