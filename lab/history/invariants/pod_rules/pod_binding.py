"""A pod is bound once, to one node, and runs on no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, NODE, POD
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class _Pod:
    """The history of one pod (a uid)."""

    seen: Revision
    scheduled: Revision | None = None
    """The Scheduled event."""


class PodBinding(Checker):
    """Compares the node of a pod over all its states, its host's address, Scheduled events and checkpoints.

    A scheduler records one Scheduled event after each binding that succeeded, so that two of them show two
    bindings also to the same node. A checkpoint shows the pods that run on its node.
    """

    about = Invariant(
        name="one-node-per-pod",
        description="A pod is bound once, to one node, and runs on no other.",
        checks="writes of pods",
        exceptions={"node-unknown": "no node has the pod's host address, as after the node was deleted"},
    )
    kinds = frozenset({POD, NODE, EVENT})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._pods: dict[str, _Pod] = {}
        self._node_by_address: dict[str, str] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check a pod's node, or a Scheduled event."""
        if revision.kind is NODE:
            self._note_addresses(revision)
        elif revision.kind is EVENT:
            yield from self._observe_event(revision)
        else:
            yield from self._observe_pod(revision)

    def _note_addresses(self, revision: Revision) -> None:
        for node in (revision.before(NODE), revision.after(NODE)):
            for address in node.status.addresses if node is not None else ():
                if address.type == "InternalIP":
                    self._node_by_address[address.address] = revision.name
        if revision.value is None:
            for text in [text for text, name in self._node_by_address.items() if name == revision.name]:
                del self._node_by_address[text]

    def _observe_pod(self, revision: Revision) -> Iterator[Violation]:
        before, pod = revision.before(POD), revision.after(POD)
        if before is not None and (pod is None or pod.metadata.uid != before.metadata.uid):
            self._pods.pop(before.metadata.uid, None)
        if pod is None:
            return
        self.checked += 1
        known = self._pods.setdefault(pod.metadata.uid, _Pod(revision))
        last, known.seen = known.seen, revision
        if before is not None and before.metadata.uid == pod.metadata.uid:
            former = before.spec.nodeName
            if former and pod.spec.nodeName != former:
                now = f"to node {pod.spec.nodeName!r}" if pod.spec.nodeName else "to no node"
                yield self.violation(
                    f"the pod was bound to node {former!r} and is now bound {now}", last, revision
                )
        if before is None or before.status.hostIP != pod.status.hostIP:
            yield from self._check_host(pod, revision)

    def _check_host(self, pod: core.Pod, revision: Revision) -> Iterator[Violation]:
        address = pod.status.hostIP
        if not address:
            return
        host = self._node_by_address.get(address)
        if host is None:
            self.allow("node-unknown")
        elif host != pod.spec.nodeName:
            bound = f"bound to node {pod.spec.nodeName!r}" if pod.spec.nodeName else "not bound"
            yield self.violation(f"node {host!r} ({address}) reports the pod, which is {bound}", revision)

    def _observe_event(self, revision: Revision) -> Iterator[Violation]:
        event = revision.after(EVENT)
        if event is None or event.reason != "Scheduled" or event.involvedObject.kind != "Pod":
            return
        known = self._pods.get(event.involvedObject.uid)
        if known is None:
            return
        first = known.scheduled
        if first is None:
            known.scheduled = revision
            first = revision
        if first.name != revision.name or _occurrences(event) > 1:
            yield self.violation(
                "two Scheduled events: a scheduler bound the pod twice", known.seen, first, revision
            )

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Check that a pod runs on its node only, by the checkpoints."""
        nodes: dict[str, list[str]] = {}
        for node, pods in sorted((evidence.checkpoints or {}).items()):
            for uid, pod in pods.items():
                if pod.running:
                    nodes.setdefault(uid, []).append(node)
        for uid, known in self._pods.items():
            bound = known.seen.after(POD)
            own = bound.spec.nodeName if bound is not None else ""
            running = nodes.get(uid, [])
            if any(node != own for node in running):
                yield self.violation(
                    f"containers of the pod run on {', '.join(running)}; it is bound to {own or 'no node'}",
                    known.seen,
                    objects=tuple(f"Node {node}" for node in running),
                )


def _occurrences(event: core.Event) -> int:
    """Return how often the event happened."""
    return max(event.series.count, event.count, 1)
