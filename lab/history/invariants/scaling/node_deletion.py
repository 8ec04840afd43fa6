"""No node is deleted while a pod is being bound to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import DELETED_BY_OTHERS, ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_pending, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.pb import core

_TAINT: Final = "ToBeDeletedByClusterAutoscaler"


class NodeDeletion(Checker):
    """Looks at the deletion of each node for pods that are nominated to it and not bound yet.

    The scheduler nominates a pod before it waits in Permit or PreBind (KEP-5278). A node that the autoscaler
    removes has its taint, and it has asked the cloud for it; others may be deleted at any time.
    """

    about = Invariant(
        name="no-node-deleted-during-binding",
        description="The autoscaler deletes no node while a binding to it is in progress (--compat=fixed).",
        checks="nodes that the autoscaler deleted",
        exceptions={
            "nominated-after-taint": "the pod was nominated when the node had the autoscaler's taint "
            "already: its last check may have come before",
            **DELETED_BY_OTHERS,
        },
        counts={
            "nominated": "pods that were nominated to a node when the autoscaler deleted it, without "
            "--compat=fixed",
            "bound-after": "pods that were bound to a node after its deletion",
        },
    )
    kinds = frozenset({POD, NODE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._nominated: dict[str, Revision] = {}
        self._tainted: dict[str, Revision] = {}
        self._deleted: set[str] = set()
        self._early: list[tuple[Revision, Revision, Revision]] = []
        """Nominations and taints of nodes that were deleted then, and the deletions."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a nomination, a taint or a deletion."""
        yield from ()
        if revision.kind is POD:
            self._observe_pod(revision)
            return
        node = revision.after(NODE)
        if node is None:
            self._note_deletion(revision)
            return
        self._deleted.discard(revision.name)
        if not any(taint.key == _TAINT for taint in node.spec.taints):
            self._tainted.pop(revision.name, None)
        else:
            self._tainted.setdefault(revision.name, revision)

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._nominated.pop(ended.metadata.uid, None)
        if pod is None:
            return
        before, uid = same_pod_before(revision), pod.metadata.uid
        if before is not None and not before.spec.nodeName and pod.spec.nodeName in self._deleted:
            self.count("bound-after")
        if not is_pending(pod) or not pod.status.nominatedNodeName:
            self._nominated.pop(uid, None)
        elif uid not in self._nominated or _node(self._nominated[uid]) != pod.status.nominatedNodeName:
            self._nominated[uid] = revision

    def _note_deletion(self, revision: Revision) -> None:
        self._deleted.add(revision.name)
        taint = self._tainted.pop(revision.name, None)
        if taint is None or revision.is_state:
            return
        self.checked += 1
        for nomination in self._nominated.values():
            if _node(nomination) != revision.name:
                continue
            if not self.settings.protects_nominated_nodes:
                self.count("nominated")
            elif nomination.revision > taint.revision:
                self.allow("nominated-after-taint")
            else:
                self._early.append((nomination, taint, revision))

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Check the nodes that were deleted during a binding."""
        for nomination, taint, deletion in self._early:
            if evidence.may_be_scaled_down(deletion.name, taint.revision, deletion.revision):
                yield self.violation(
                    "the autoscaler deleted the node while a pod was nominated to it",
                    nomination,
                    taint,
                    deletion,
                )
            else:
                self.allow("deleted-by-others")


def _node(nomination: Revision) -> str:
    """Return the node to which a write nominated a pod."""
    pod: core.Pod | None = nomination.after(POD)
    return "" if pod is None else pod.status.nominatedNodeName
