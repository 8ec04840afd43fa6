"""A pod that is deleted ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.node_leases import NodeLeases
from nominee.lab.history.invariants.checking.pods import ended_pod, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, NODE, POD
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time

MARGIN_SECONDS: Final = 45.0
"""How long after its deletionTimestamp a pod may exist: more than a dead kubelet's lease lasts."""


@dataclass(frozen=True, slots=True)
class _Terminating:
    pod: core.Pod
    revision: Revision


class PodTermination(Checker):
    """Keeps the terminating pods, and looks at the end which of them should be gone.

    The deletionTimestamp includes the grace period.
    """

    about = Invariant(
        name="deleted-pods-end",
        description=f"A deleted pod is gone {MARGIN_SECONDS:.0f} s after its deletionTimestamp, which never "
        "moves to a later time.",
        checks="deletions of pods",
        exceptions={
            "no-kubelet": "the pod's node does not exist, is not ready, or no kubelet renewed its lease "
            "all the time",
            "finalizers": "a finalizer keeps the pod",
            "forced-late": "a deletion with a shorter grace period came after the deletionTimestamp, and the "
            "API server set it to that time",
            "in-time": "the history ends before the pod must be gone",
        },
    )
    kinds = frozenset({POD, NODE, LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._terminating: dict[str, _Terminating] = {}
        self._ready_nodes: set[str] = set()
        self._leases = NodeLeases()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a terminating pod, or a node's condition or lease; check that a deletionTimestamp stays."""
        if revision.kind is NODE:
            self._note_node(revision)
            return
        if revision.kind is LEASE:
            self._leases.observe(revision)
            return
        ended = ended_pod(revision)
        if ended is not None:
            self._terminating.pop(ended.metadata.uid, None)
        pod, before = revision.after(POD), same_pod_before(revision)
        if before is not None and pod is not None and before.metadata.HasField("deletionTimestamp"):
            yield from self._check_timestamp(before, pod, revision)
        if pod is not None and pod.metadata.HasField("deletionTimestamp"):
            if pod.metadata.uid not in self._terminating:
                self.checked += 1
            self._terminating[pod.metadata.uid] = _Terminating(pod, revision)

    def _check_timestamp(self, before: core.Pod, pod: core.Pod, revision: Revision) -> Iterator[Violation]:
        if not pod.metadata.HasField("deletionTimestamp"):
            yield self.violation("the pod was terminating and lost its deletionTimestamp", revision)
            return
        old, new = from_time(before.metadata.deletionTimestamp), from_time(pod.metadata.deletionTimestamp)
        if new > old and pod.metadata.deletionGracePeriodSeconds < before.metadata.deletionGracePeriodSeconds:
            self.allow("forced-late")
        elif new > old:
            yield self.violation(f"the deletionTimestamp moved {new - old:.0f} s later", revision)

    def _note_node(self, revision: Revision) -> None:
        node = revision.after(NODE)
        if node is not None and condition_is(node.status.conditions, "Ready"):
            self._ready_nodes.add(revision.name)
        else:
            self._ready_nodes.discard(revision.name)

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Check the pods that still exist."""
        for each in self._terminating.values():
            pod = each.pod
            # Without an API server no process can delete a pod; the pod GC then comes within 20 s.
            late = self.served_time.between(from_time(pod.metadata.deletionTimestamp), evidence.now)
            if late <= MARGIN_SECONDS:
                self.allow("in-time")
            elif pod.metadata.finalizers:
                self.allow("finalizers")
            elif pod.spec.nodeName and not self._has_kubelet(pod.spec.nodeName, evidence.now):
                self.allow("no-kubelet")
            else:
                node = pod.spec.nodeName
                on = f"on node {node!r}, which is ready" if node else "without a node"
                yield self.violation(
                    f"the pod, {on}, exists {late:.0f} s after its deletionTimestamp",
                    each.revision,
                    objects=(f"Node {node}",) if node else (),
                )

    def _has_kubelet(self, node: str, now: float) -> bool:
        return node in self._ready_nodes and self._leases.had_kubelet(node, now, MARGIN_SECONDS)
