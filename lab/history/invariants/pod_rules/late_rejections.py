"""A kubelet that has admitted a pod does not reject it later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.node_clocks import NodeClocks
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import node_allocatable
from nominee.machinery.scheduling.priority import is_critical

_REASONS: Final = frozenset({
    "NodeAffinity",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "UnexpectedAdmissionError",
})  # fmt: skip
OUT_OF: Final = "OutOf"
"""The reasons OutOfcpu, OutOfpods and so on begin with it."""
PREEMPTED: Final = "Preempting"
_STALE_SECONDS: Final = 15.0
"""How long a change of a node may not have been seen."""
_RESTART_SECONDS: Final = 5.0
_REPORTED_SECONDS: Final = 35.0
"""How late the end of a pod may be reported: a call may have no answer until its deadline, 30 s."""


@dataclass(frozen=True, slots=True)
class _Early:
    """A pod for which a kubelet makes room, or that its client has bound without a look at the room.

    `revision` is that of its binding, or of its last resize; `birth` is its creation in whole seconds.
    `end_time` is when its end was reported, unless it was refused.
    """

    node: str
    birth: int
    revision: int
    end_time: float | None = None


@dataclass(frozen=True, slots=True)
class _Rejection:
    """A rejection; `grant` is the time of the report that shows the last room that the pod got."""

    node: str
    grant: float
    time: float
    violation: Violation


class LateRejections(Checker):
    """Looks for pods that fail by an admission's reason after their containers were reported.

    A kubelet that restarts admits its pods once more, in the order of creation. Those that fitted fit again,
    unless the node has changed, or a pod has got room that another one took as well: one of which another
    kubelet knew that it had ended, or that it had preempted.
    Source: kubelet 1.36, HandlePodAdditions, filterOutInactivePods.
    """

    about = Invariant(
        name="admitted-pods-stay-admitted",
        description="A pod whose containers the kubelet has reported is not Failed by admission.",
        checks="pods that failed by admission",
        exceptions={
            "node-changed": "the node's labels or allocatable resources changed after the pod was bound, or "
            f"up to {_STALE_SECONDS:.0f} s before it lost a label, or had less of what the pod is refused "
            "for",
            "victim-counted": "the end of a pod that the kubelet had preempted was written within "
            f"{_RESTART_SECONDS:g} s before: a kubelet that restarts meanwhile counts it, and orders pods by "
            "their creation in whole seconds (kubernetes/kubernetes#141210)",
            "admitted-first": "a critical pod, or one that its client has bound, came to the node or was "
            "resized later, and is not younger in whole seconds: a kubelet that restarts admits it first, "
            f"and may have reported its end at once, up to {_RESTART_SECONDS:g} s before",
            "end-unreported": "a pod of the node had ended when this one got its room, and its end was "
            f"reported after that, up to {_REPORTED_SECONDS:.0f} s late: a kubelet that restarts counts it",
        },
    )
    kinds = frozenset({POD, NODE, LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._changed: dict[str, int] = {}
        self._reduced: dict[tuple[str, str], float] = {}
        """When a node lost a label (''), or had less of a resource, by its name and the resource's."""
        self._bound: dict[str, Revision] = {}
        """The revisions at which pods got their node: a kubelet admits them before it reports containers."""
        self._admitted: dict[str, Revision] = {}
        self._preempted: dict[str, float] = {}
        self._early: dict[str, _Early] = {}
        self._grants: dict[str, float] = {}
        self._ends: dict[str, list[tuple[float, float]]] = {}
        """For each node the times of ends of pods, and of their reports, of which rejections may follow."""
        self._clocks = NodeClocks()
        self._rejections: list[_Rejection] = []
        """Those that the report of another pod's end may still explain."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a change of a node or the first report of a pod's containers; check a failure."""
        if revision.kind is LEASE:
            self._clocks.observe(revision)
            return
        if revision.kind is NODE:
            self._observe_node(revision)
            return
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            for known in (self._bound, self._admitted, self._early, self._grants):
                known.pop(ended.metadata.uid, None)
        if pod is None:
            return
        before = same_pod_before(revision)
        if pod.spec.nodeName:
            self._bound.setdefault(pod.metadata.uid, revision)
            self._note_early(before, pod, revision)
        self._note_end(before, pod, revision.time)
        admitted = self._admitted.get(pod.metadata.uid)
        if pod.status.phase == "Failed":
            if pod.status.reason == PREEMPTED:
                self._preempted[pod.spec.nodeName] = revision.time
            if before is not None and before.status.phase != "Failed" and is_rejected(pod):
                yield from self._check(pod, admitted, revision)
        elif pod.status.containerStatuses:
            self._admitted.setdefault(pod.metadata.uid, revision)
            if before is None or _allocated(before) != _allocated(pod):
                self._grants[pod.metadata.uid] = revision.time
        yield from self._unexplained(revision.time)

    def _note_early(self, before: core.Pod | None, pod: core.Pod, revision: Revision) -> None:
        """Note a pod for which a kubelet makes room, or that its client has bound."""
        uid = pod.metadata.uid
        is_created = before is None and not revision.is_state
        is_resized = before is not None and _requests(before) != _requests(pod)
        if is_terminal(pod):
            known = self._early.pop(uid, None)
            if known is not None and not is_rejected(pod) and uid not in self._admitted:
                self._early[uid] = known if known.end_time else replace(known, end_time=revision.time)
        elif is_created or (is_critical(pod) and (is_resized or uid not in self._early)):
            birth = pod.metadata.creationTimestamp.seconds
            self._early[uid] = _Early(pod.spec.nodeName, birth, revision.revision)

    def _note_end(self, before: core.Pod | None, pod: core.Pod, now: float) -> None:
        """Note the first report of a pod's end."""
        node = pod.spec.nodeName
        if before is None or is_terminal(before) or not is_terminal(pod) or is_rejected(pod):
            return
        recent = [each for each in self._ends.get(node, ()) if self._is_recent(each[1], now)]
        self._ends[node] = [*recent, (self._clocks.finished_at(pod, now), now)]
        left = [each for each in self._rejections if not self._is_explained(each)]
        for _ in range(len(self._rejections) - len(left)):
            self.allow("end-unreported")
        self._rejections = left

    def _is_explained(self, rejection: _Rejection) -> bool:
        """Return whether a pod of the node had ended before the grant, and its end was reported later."""
        return any(
            finished <= rejection.grant < reported and self._is_recent(reported, rejection.time)
            for finished, reported in self._ends.get(rejection.node, ())
        )

    def _is_recent(self, reported: float, time: float) -> bool:
        """Return whether a kubelet that began to restart before a report may reject a pod at this time."""
        return self.served_time.between(reported, time) <= _RESTART_SECONDS

    def _unexplained(self, now: float) -> Iterator[Violation]:
        """Report the rejections that no report of an end explains any more."""
        while self._rejections:
            first = self._rejections[0]
            if self.served_time.between(first.time, now) <= _REPORTED_SECONDS:
                return
            yield self._rejections.pop(0).violation

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report the rejections that are left."""
        for each in self._rejections:
            yield each.violation

    def _observe_node(self, revision: Revision) -> None:
        before, node = revision.before(NODE), revision.after(NODE)
        if before is None or node is None:
            self._changed[revision.name] = revision.revision
            return
        is_relabelled = before.metadata.labels != node.metadata.labels
        if not is_relabelled and before.status == node.status:
            return
        old, new = node_allocatable(before), node_allocatable(node)
        if is_relabelled or old != new:
            self._changed[revision.name] = revision.revision
        less = [name for name, number in old.items() if new.get(name, 0) < number]
        if before.metadata.labels.items() - node.metadata.labels.items():
            less.append("")
        self._reduced.update(dict.fromkeys(((revision.name, name) for name in less), revision.time))

    def _check(self, pod: core.Pod, admitted: Revision | None, revision: Revision) -> Iterator[Violation]:
        self.checked += 1
        if admitted is None:
            return
        uid, node = pod.metadata.uid, pod.spec.nodeName
        bound = self._bound.get(uid, admitted)
        # Scheduler and kubelet may both have seen the node as it was before.
        is_out = pod.status.reason.startswith(OUT_OF)
        resource = pod.status.reason.removeprefix(OUT_OF) if is_out else ""
        reduced = self._reduced.get((node, resource))
        is_stale = reduced is not None and self.served_time.between(reduced, bound.time) < _STALE_SECONDS
        if self._changed.get(node, 0) > bound.revision or is_stale:
            self.allow("node-changed")
            return
        preempted = self._preempted.get(node, 0.0)
        if self.served_time.between(preempted, revision.time) <= _RESTART_SECONDS:
            self.allow("victim-counted")
            return
        if is_out and self._is_admitted_after(pod, bound.revision, revision.time):
            self.allow("admitted-first")
            return
        violation = self.violation(
            f"node {node!r} had admitted the pod and rejects it: {pod.status.reason}",
            admitted,
            revision,
            objects=(f"Node {node}",),
        )
        rejection = _Rejection(node, self._grants.get(uid, admitted.time), revision.time, violation)
        if not is_out:
            yield violation
        elif self._is_explained(rejection):
            self.allow("end-unreported")
        else:
            self._rejections.append(rejection)

    def _is_admitted_after(self, pod: core.Pod, bound: int, now: float) -> bool:
        """Return whether a kubelet that restarts may admit a pod first that was not there at `bound`.

        Such a pod may end at once, as one that is being deleted.
        """
        birth = pod.metadata.creationTimestamp.seconds
        return any(
            uid != pod.metadata.uid
            and each.node == pod.spec.nodeName
            and each.revision > bound
            and each.birth <= birth
            and (each.end_time is None or self._is_recent(each.end_time, now))
            for uid, each in self._early.items()
        )


def _requests(pod: core.Pod) -> list[core.ResourceRequirements]:
    """Return the resources in the spec of each container of the pod."""
    return [each.resources for each in pod.spec.containers]


def _allocated(pod: core.Pod) -> list[dict[str, str]]:
    """Return the resources that the kubelet has allocated to each container of the pod."""
    return [
        {name: each.allocatedResources[name].string for name in each.allocatedResources}
        for each in pod.status.containerStatuses
    ]


def is_rejected(pod: core.Pod) -> bool:
    """Return whether a kubelet's admission has refused the pod."""
    return pod.status.reason in _REASONS or pod.status.reason.startswith(OUT_OF)
