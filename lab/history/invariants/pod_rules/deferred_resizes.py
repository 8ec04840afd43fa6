"""A deferred resize waits in the scheduler's queue, is disabled, or is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.objects import ObjectKey, condition_is, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_resize_deferred

SETTLE_SECONDS: Final = 5.0
"""How long a scheduler may take to put a pod into its queue."""


class DeferredResizes(Checker):
    """Looks for the pods with a deferred resize in the scheduler's queue at the end (KEP-5836)."""

    about = Invariant(
        name="deferred-resizes-are-queued",
        description="A pod with a deferred resize is in the scheduler's queue, or preemption for it is "
        "disabled, or the resize is done.",
        checks="resizes that were deferred",
        exceptions={
            "disabled": "the kubelet reports PodResizePreemptionDisabled, or the node's podPreemptionPolicy "
            "names an owner",
            "recent": f"the resize was deferred less than {SETTLE_SECONDS:.0f} s before the history ends",
        },
    )
    kinds = frozenset({POD, NODE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._deferred: dict[str, Revision] = {}
        self._since: dict[str, float] = {}
        self._disabling_nodes: set[str] = set()

    def unchecked(self, evidence: Evidence) -> str:
        """Return the reason where the scheduler does not preempt for resizes, or did not answer."""
        if not self.settings.preempts_for_resizes:
            return "InPlacePodVerticalScalingSchedulerPreemption is off, or was not on all the time"
        return "" if evidence.queued_pods is not None else "the scheduler's queue is not available"

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a deferred resize, or a node's policy."""
        if revision.kind is NODE:
            node = revision.after(NODE)
            if node is not None and node.spec.podPreemptionPolicy.disableResizePreemption:
                self._disabling_nodes.add(revision.name)
            else:
                self._disabling_nodes.discard(revision.name)
            return
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._forget(ended.metadata.uid)
        if pod is None:
            return
        if not _waits(pod):
            self._forget(pod.metadata.uid)
            return
        before = same_pod_before(revision)
        if before is None or not _waits(before):
            self.checked += 1
            self._since[pod.metadata.uid] = revision.time
        self._deferred[pod.metadata.uid] = revision
        yield from ()

    def _forget(self, uid: str) -> None:
        self._deferred.pop(uid, None)
        self._since.pop(uid, None)

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Look for each deferred resize in the queue."""
        for uid, revision in self._deferred.items():
            pod = revision.after(POD)
            if pod is None or ObjectKey(revision.namespace, revision.name) in (evidence.queued_pods or ()):
                continue
            disabled = condition_is(pod.status.conditions, "PodResizePreemptionDisabled")
            if disabled or pod.spec.nodeName in self._disabling_nodes:
                self.allow("disabled")
            elif self.served_time.between(self._since[uid], evidence.now) < SETTLE_SECONDS:
                self.allow("recent")
            else:
                yield self.violation("the resize is deferred, and the pod is in no queue", revision)


def _waits(pod: core.Pod) -> bool:
    return is_resize_deferred(pod) and not is_terminating(pod) and not is_terminal(pod)
