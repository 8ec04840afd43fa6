"""A StatefulSet never runs two pods of an ordinal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD, STATEFUL_SET
from nominee.machinery.api.objects import condition_is, controller_of, is_terminating
from nominee.machinery.api.pb import core

_WRITES: Final = frozenset({Method.DELETE, Method.UPDATE, Method.PATCH})
_COMPONENTS: Final = frozenset({"apiserver", "scheduler", "controllers", "kubelet", "autoscaler"})


class _Removal(NamedTuple):
    """The removal of a pod, and whether its containers ran on a ready node."""

    revision: Revision
    uid: str
    runs: bool
    has_finalizers: bool


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
        exceptions={
            "forced": "a client forced the deletion of the pod, or took its last finalizer away, while a "
            "component deleted it"
        },
    )
    kinds = frozenset({POD, NODE})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._ready_nodes: set[str] = set()
        self._marks: LRUCache[str, tuple[int, str]] = LRUCache(PODS_MAX)
        """The last mark of a pod by key: the write that set its grace period to 0, and the pod's uid."""
        self._removals: LRUCache[str, _Removal] = LRUCache(PODS_MAX)
        """The last removal of a pod by key."""
        self._of_clients: LRUCache[str, None] = LRUCache(PODS_MAX)
        """The pods, by uid, that a client forced, or whose last finalizer it took away."""
        self._suspects: LRUCache[str, Violation] = LRUCache(PODS_MAX)
        """What components removed, by uid."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a node, or the mark or the removal of a pod."""
        if revision.kind is NODE:
            node = revision.after(NODE)
            if node is not None and condition_is(node.status.conditions, "Ready"):
                self._ready_nodes.add(revision.name)
            else:
                self._ready_nodes.discard(revision.name)
            return
        before, pod = same_pod_before(revision), revision.after(POD)
        if pod is not None and _is_forced(pod) and not (before is not None and _is_forced(before)):
            self._marks[revision.key] = revision.revision, pod.metadata.uid
        ended = ended_pod(revision)
        owner = controller_of(ended) if ended is not None else None
        if ended is not None and owner is not None and owner.kind == STATEFUL_SET.kind:
            # Without a grace period each deletion removes the pod at once.
            is_graceful = ended.spec.terminationGracePeriodSeconds > 0
            runs = is_graceful and _runs(ended) and ended.spec.nodeName in self._ready_nodes
            self._removals[revision.key] = _Removal(
                revision, ended.metadata.uid, runs, bool(ended.metadata.finalizers)
            )
        yield from ()

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Check a removal that a component asked for."""
        if answer.kind is not POD or answer.method not in _WRITES:
            return
        is_component = answer.client.split("-")[0] in _COMPONENTS
        if is_component and answer.method is not Method.DELETE:
            return
        key = POD.key(answer.namespace, answer.name)
        removal = self._removals.get(key)
        if not is_component:
            self._note_client(answer, key, removal)
        elif (
            removal is not None and answer.outcome is Outcome.DONE and answer.spans(removal.revision.revision)
        ):
            self._check(answer, removal)
        yield from ()

    def _check(self, answer: Answer, removal: _Removal) -> None:
        self.checked += 1
        if removal.runs:
            component = answer.client.split("-")[0]
            self._suspects[removal.uid] = self.violation(
                f"the {component} removed the pod while its containers ran on a node that is ready",
                removal.revision,
            )

    def _note_client(self, answer: Answer, key: str, removal: _Removal | None) -> None:
        """Note a pod that a client forced or freed, whatever the answer says.

        A deletion that is forced marks the pod, and removes it then; if that fails, the next deletion removes
        the pod at once (BeforeDelete of the API server's registry). The write that takes the last finalizer
        away removes it, too.
        """
        marked_at, marked = self._marks.get(key, (0, ""))
        if answer.is_forced and marked and answer.spans(marked_at):
            self._of_clients[marked] = None
        if removal is None or not answer.spans(removal.revision.revision):
            return
        frees = removal.has_finalizers and answer.method is not Method.DELETE
        if answer.is_forced or (frees and answer.outcome is Outcome.DONE):
            self._of_clients[removal.uid] = None

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Yield the removals that no client has forced."""
        for uid, violation in self._suspects.items():
            if uid in self._of_clients:
                self.allow("forced")
            else:
                yield violation


def _is_forced(pod: core.Pod) -> bool:
    """Return whether the pod's deletion leaves it no time."""
    return is_terminating(pod) and pod.metadata.deletionGracePeriodSeconds == 0


def _runs(pod: core.Pod) -> bool:
    statuses = pod.status.containerStatuses
    return not is_terminal(pod) and any(each.state.HasField("running") for each in statuses)
