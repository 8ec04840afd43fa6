"""A StatefulSet never runs two pods of an ordinal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD, STATEFUL_SET
from nominee.machinery.api.objects import condition_is, controller_of
from nominee.machinery.api.pb import core

_COMPONENTS: Final = frozenset({"apiserver", "scheduler", "controllers", "kubelet", "autoscaler"})


class UniqueOrdinals(Checker):
    """Looks at the deletions by components that remove a StatefulSet's pod.

    Two pods of an ordinal have one name, so that the next one exists only when the object of the one before
    is removed: no component does that while its containers run, unless its node is gone or not ready. What
    clients force is theirs to answer for.
    Source: kubernetes.io, "Force Delete StatefulSet Pods"; KEP-2268 for nodes that are not ready.
    """

    about = Invariant(
        name="one-pod-per-ordinal",
        description="No component removes a StatefulSet's pod, in whose place another one of the ordinal "
        "starts, while its containers run on a node that is ready.",
        checks="removals of StatefulSets' pods by components",
    )
    kinds = frozenset({POD, NODE})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._ready_nodes: set[str] = set()
        self._removals: LRUCache[str, tuple[Revision, bool]] = LRUCache(PODS_MAX)
        """The last removal of a pod by key, and whether its containers ran on a ready node."""
        self._suspects: LRUCache[int, Violation] = LRUCache(PODS_MAX)
        """Removals by revision, which a client may have asked for that has no answer yet."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a node, or the removal of a pod."""
        if revision.kind is NODE:
            node = revision.after(NODE)
            if node is not None and condition_is(node.status.conditions, "Ready"):
                self._ready_nodes.add(revision.name)
            else:
                self._ready_nodes.discard(revision.name)
            return
        pod = ended_pod(revision)
        owner = controller_of(pod) if pod is not None else None
        if pod is not None and owner is not None and owner.kind == STATEFUL_SET.kind:
            # Without a grace period each deletion removes the pod at once.
            is_graceful = pod.spec.terminationGracePeriodSeconds > 0
            runs = is_graceful and _runs(pod) and pod.spec.nodeName in self._ready_nodes
            self._removals[revision.key] = (revision, runs)
        yield from ()

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Check a removal that a component asked for."""
        if answer.method is not Method.DELETE or answer.outcome is not Outcome.DONE or answer.kind is not POD:
            return
        component = answer.client.split("-")[0]
        revision, runs = self._removals.get(POD.key(answer.namespace, answer.name), (None, False))
        if revision is None or not answer.begin < revision.revision <= answer.end:
            return
        if component not in _COMPONENTS:
            # It may be the one that removed the pod: a deletion that only marked it is answered, too.
            del self._removals[revision.key]
            self._suspects.pop(revision.revision, None)
        else:
            self.checked += 1
            if runs:
                self._suspects[revision.revision] = self.violation(
                    f"the {component} removed the pod while its containers ran on a node that is ready",
                    revision,
                )
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Yield the removals that no client asked for."""
        yield from self._suspects.values()


def _runs(pod: core.Pod) -> bool:
    statuses = pod.status.containerStatuses
    return not is_terminal(pod) and any(each.state.HasField("running") for each in statuses)
