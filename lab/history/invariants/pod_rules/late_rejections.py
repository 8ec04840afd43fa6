"""A kubelet that has admitted a pod does not reject it later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import ended_pod, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import node_allocatable

_REASONS: Final = frozenset({
    "NodeAffinity",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "UnexpectedAdmissionError",
})  # fmt: skip
OUT_OF: Final = "OutOf"
"""The reasons OutOfcpu, OutOfpods and so on begin with it."""
PREEMPTED: Final = "Preempting"
_RESTART_SECONDS: Final = 5.0


class LateRejections(Checker):
    """Looks for pods that fail by an admission's reason after their containers were reported.

    A kubelet that restarts admits its pods once more, in the order of creation. Those that fitted fit again,
    unless the node has changed.
    """

    about = Invariant(
        name="admitted-pods-stay-admitted",
        description="A pod whose containers the kubelet has reported is not Failed by admission.",
        checks="pods that failed by admission",
        exceptions={
            "node-changed": "the node's labels or allocatable resources changed after the pod was bound",
            "victim-counted": "the end of a pod that the kubelet had preempted was written within "
            f"{_RESTART_SECONDS:g} s before: a kubelet that restarts meanwhile counts it, and orders pods by "
            "their creation in whole seconds (kubernetes/kubernetes#141210)",
        },
    )
    kinds = frozenset({POD, NODE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._changed: dict[str, int] = {}
        self._bound: dict[str, int] = {}
        """The revisions at which pods got their node: a kubelet admits them before it reports containers."""
        self._admitted: dict[str, Revision] = {}
        self._preempted: dict[str, float] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a change of a node or the first report of a pod's containers; check a failure."""
        if revision.kind is NODE:
            self._observe_node(revision)
            return
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._bound.pop(ended.metadata.uid, None)
            self._admitted.pop(ended.metadata.uid, None)
        if pod is None:
            return
        if pod.spec.nodeName:
            self._bound.setdefault(pod.metadata.uid, revision.revision)
        admitted = self._admitted.get(pod.metadata.uid)
        if pod.status.phase == "Failed":
            if pod.status.reason == PREEMPTED:
                self._preempted[pod.spec.nodeName] = revision.time
            before = same_pod_before(revision)
            if before is not None and before.status.phase != "Failed" and is_rejected(pod):
                yield from self._check(pod, admitted, revision)
        elif admitted is None and pod.status.containerStatuses:
            self._admitted[pod.metadata.uid] = revision

    def _observe_node(self, revision: Revision) -> None:
        before, node = revision.before(NODE), revision.after(NODE)
        if (
            before is None
            or node is None
            or before.metadata.labels != node.metadata.labels
            or (before.status != node.status and node_allocatable(before) != node_allocatable(node))
        ):
            self._changed[revision.name] = revision.revision

    def _check(self, pod: core.Pod, admitted: Revision | None, revision: Revision) -> Iterator[Violation]:
        self.checked += 1
        if admitted is None:
            return
        if self._changed.get(pod.spec.nodeName, 0) > self._bound.get(pod.metadata.uid, admitted.revision):
            self.allow("node-changed")
            return
        preempted = self._preempted.get(pod.spec.nodeName, 0.0)
        if self.served_time.between(preempted, revision.time) <= _RESTART_SECONDS:
            self.allow("victim-counted")
            return
        yield self.violation(
            f"node {pod.spec.nodeName!r} had admitted the pod and rejects it: {pod.status.reason}",
            admitted,
            revision,
            objects=(f"Node {pod.spec.nodeName}",),
        )


def is_rejected(pod: core.Pod) -> bool:
    """Return whether a kubelet's admission has refused the pod."""
    return pod.status.reason in _REASONS or pod.status.reason.startswith(OUT_OF)
