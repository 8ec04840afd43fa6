"""The resources that a kubelet has allocated to its pods stay within the node's allocatable resources."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.node_clocks import NodeClocks
from nominee.lab.history.invariants.checking.node_leases import NodeLeases
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.invariants.pod_rules.late_rejections import PREEMPTED
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, LEASE, NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import (
    PODS,
    Resources,
    add,
    node_allocatable,
    pod_requests,
    subtract,
)

SETTLE_SECONDS: Final = 5.0
"""How long an excess must last: a kubelet writes the statuses of its pods independently, so that what one pod
has got may be reported before another pod reports that it has returned it."""
REPORTED_SECONDS: Final = 35.0
"""How long it may last if a pod that has ended, or that the kubelet preempted, has returned it: the report of
its end may have no answer until the deadline of the call, 30 s, and is made again. The time begins again when
a kubelet comes back: it reports what ended before its absence."""

OBJECTS_MAX: Final = 20
"""Pods that a violation names."""


@dataclass(frozen=True, slots=True)
class _Share:
    """The resources of one pod."""

    subject: str
    resources: Resources


@dataclass(slots=True)
class _Excess:
    """The resources of which too much is allocated, since when, and the write that shows it."""

    resources: tuple[str, ...]
    since: float
    revision: Revision
    is_reported: bool = False
    explaining: set[str] = field(default_factory=set)
    """The pods, by uid, without each of which there was no excess, all the time."""
    has_ended: bool = False
    """One of them had ended when it began, as the report of its end shows."""
    lasting: Violation | None = None
    """What is reported if that is not so."""


@dataclass(slots=True)
class _Node:
    """A node with the pods that its kubelet has admitted."""

    allocatable: Resources = field(default_factory=dict)
    exists: bool = False
    shares: dict[str, _Share] = field(default_factory=dict)
    total: Resources = field(default_factory=dict)
    shrunk: Resources = field(default_factory=dict)
    """By resource that shrank: how much may stay allocated until it fits again."""
    shrunk_at: float = 0.0
    bound: set[str] = field(default_factory=set)
    """The pods, by uid, that are bound to the node and have not been reported."""
    is_settled: bool = False
    """Enough time has passed since then for the reports that were under way."""
    late_pods: set[str] = field(default_factory=set)
    """Those that were bound when allocatable shrank: the kubelet may have admitted them before."""
    excess: _Excess | None = None

    def set(self, uid: str, share: _Share | None) -> None:
        """Replace the resources of a pod; None removes it."""
        former = self.shares.pop(uid, None)
        if former is not None:
            self.total = subtract(self.total, former.resources)
        self.bound.discard(uid)
        if share is not None:
            if uid in self.late_pods:
                self.late_pods.discard(uid)
                self.shrunk = {
                    name: kept + share.resources.get(name, 0) for name, kept in self.shrunk.items()
                }
            self.shares[uid] = share
            self.total = add(self.total, share.resources)

    def resize(self, allocatable: Resources, time: float) -> bool:
        """Replace the allocatable resources, and return whether some shrank below the allocated ones.

        What is allocated may stay then. The reports of the last pods may still come.
        """
        smaller = [name for name, former in self.allocatable.items() if allocatable.get(name, 0) < former]
        self.shrunk |= {name: self.total.get(name, 0) for name in smaller}
        self.shrunk_at = time
        if smaller:
            self.late_pods, self.is_settled = set(self.bound), False
        self.allocatable = allocatable
        return any(allocatable.get(name, 0) < self.shrunk[name] for name in smaller)

    def follow_shrinking(self, seconds: float) -> None:
        """Lower the allowed excess as pods end. Until it has settled it rises as well: writes may be late.

        `seconds` have passed since it shrank, in which a kubelet could report.
        """
        if seconds >= REPORTED_SECONDS:
            self.late_pods.clear()
        self.is_settled |= seconds >= SETTLE_SECONDS
        for name, kept in list(self.shrunk.items()):
            total = self.total.get(name, 0)
            if not self.is_settled:
                self.shrunk[name] = total
            elif total <= self.allocatable.get(name, 0):
                del self.shrunk[name]
            elif total < kept:
                self.shrunk[name] = total

    def exceeded(self, without: Container[str] = ()) -> tuple[str, ...]:
        """Return the resources of which more is allocated than there is, or than may stay.

        Pods `without` do not count.
        """
        total = self.total
        for uid in [uid for uid in self.shares if uid in without]:
            total = subtract(total, self.shares[uid].resources)
        return tuple(
            name
            for name, number in total.items()
            if number > 0 and number > max(self.allocatable.get(name, 0), self.shrunk.get(name, 0))
        )


class Allocations(Checker):
    """Adds up, for each node, the pods that its kubelet has admitted.

    A pod counts from the first report of its containers to the report of their end. A container counts for
    the larger of allocatedResources and resources of its status (KEP-1287); where its kubelet reports
    neither, for its requests at the first report. Extended resources that devices provide do not count
    (KEP-5004). Pods of a node that does not exist are not checked.
    An excess does not last while the lease of the node shows that its kubelet is away.
    """

    about = Invariant(
        name="allocated-within-allocatable",
        description="The allocated resources of a node's pods stay within the node's allocatable resources.",
        checks="reports of nodes and of their pods",
        exceptions={
            "allocatable-shrank": "allocatable was lowered: the pods that were there, or bound to the node "
            f"and reported within {REPORTED_SECONDS:.0f} s, may stay, but no more is allocated until all fit "
            "again",
            "settling": f"an excess that was gone within {SETTLE_SECONDS:.0f} s: reports of different "
            "pods may come in any order",
            "preempted": f"an excess of up to {REPORTED_SECONDS:.0f} s, which a pod explains that the "
            "kubelet has preempted by an event: the report of its end may be late",
            "ended": f"an excess of up to {REPORTED_SECONDS:.0f} s, which a pod explains whose containers "
            "had ended before: the report of its end was late. The time begins again when a kubelet comes "
            "back",
        },
    )
    kinds = frozenset({POD, NODE, EVENT, LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._nodes: dict[str, _Node] = {}
        self._clocks = NodeClocks()
        self._leases = NodeLeases()
        self._preempted: set[str] = set()
        """The pods, by uid, whose room a kubelet has given to a critical pod."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Follow a pod's or a node's change, or note a preemption."""
        if revision.kind is EVENT:
            event = revision.after(EVENT)
            if event is not None and event.reason == PREEMPTED and event.involvedObject.kind == "Pod":
                self._preempted.add(event.involvedObject.uid)
            return
        if revision.kind is LEASE:
            self._clocks.observe(revision)
            self._leases.observe(revision)
            return
        is_node = revision.kind is NODE
        if not is_node:
            self._note_end(revision)
        names = self._observe_node(revision) if is_node else self._observe_pod(revision)
        for name in names:
            yield from self._check(name, revision)

    def _observe_node(self, revision: Revision) -> tuple[str, ...]:
        node = revision.after(NODE)
        known = self._nodes.setdefault(revision.name, _Node())
        if node is None:
            known.exists, known.excess = False, None
            if not known.shares:
                del self._nodes[revision.name]
            return ()
        allocatable = node_allocatable(node)
        if known.exists and allocatable == known.allocatable:
            # A heartbeat: time has passed.
            return (revision.name,) if known.excess is not None else ()
        known.exists = True
        if known.resize(allocatable, revision.time):
            self.allow("allocatable-shrank")
        return (revision.name,)

    def _observe_pod(self, revision: Revision) -> tuple[str, ...]:
        ended, pod = ended_pod(revision), revision.after(POD)
        changed = []
        if ended is not None and ended.spec.nodeName:
            self._set(ended.spec.nodeName, ended.metadata.uid, None)
            self._preempted.discard(ended.metadata.uid)
            changed.append(ended.spec.nodeName)
        if pod is not None and pod.spec.nodeName:
            before = same_pod_before(revision)
            node, uid = pod.spec.nodeName, pod.metadata.uid
            if before is None or before.status != pod.status:
                former = self._nodes[node].shares.get(uid) if node in self._nodes else None
                resources = _allocated(pod, None if former is None else former.resources)
                share = None if resources is None else _Share(revision.subject, resources)
                if share != former:
                    self._set(node, uid, share)
                elif resources is None and not is_terminal(pod):
                    self._nodes.setdefault(node, _Node()).bound.add(uid)
                changed.append(node)
        return tuple(dict.fromkeys(changed))

    def _note_end(self, revision: Revision) -> None:
        """Note the report of a pod's end that explains an excess.

        A kubelet gives the room of a pod away when its containers have ended, and reports it beside that.
        Source: kubelet 1.36, filterOutInactivePods.
        """
        pod = revision.after(POD)
        known = None if pod is None else self._nodes.get(pod.spec.nodeName)
        if pod is None or known is None or known.excess is None or not is_terminal(pod):
            return
        if pod.metadata.uid in known.excess.explaining:
            finished = self._clocks.finished_at(pod, revision.time)
            known.excess.has_ended |= finished <= known.excess.since

    def _set(self, node: str, uid: str, share: _Share | None) -> None:
        known = self._nodes.setdefault(node, _Node())
        known.set(uid, share)
        if not known.exists and not known.shares:
            del self._nodes[node]

    def _check(self, name: str, revision: Revision) -> Iterator[Violation]:
        node = self._nodes.get(name)
        if node is None or not node.exists:
            return
        self.checked += 1
        if node.shrunk:
            node.follow_shrinking(self._seconds(name, node.shrunk_at, revision.time))
        exceeded, excess = node.exceeded(), node.excess
        if not exceeded:
            yield from self._end(node)
            return
        if excess is None:
            explaining = {uid for uid in node.shares if not node.exceeded({uid})}
            node.excess = _Excess(exceeded, revision.time, revision, explaining=explaining)
            return
        excess.explaining &= {uid for uid in excess.explaining if not node.exceeded({uid})}
        if excess.is_reported:
            return
        excess.lasting = self._lasting(name, node, excess, revision.time) or excess.lasting
        may_have_ended = self._seconds(name, excess.since, revision.time) < REPORTED_SECONDS
        if excess.lasting is not None and not (excess.explaining and may_have_ended):
            excess.is_reported = True
            yield excess.lasting

    def _end(self, node: _Node) -> Iterator[Violation]:
        """Forget an excess that is over, and report one that lasted, and that no pod explains."""
        excess, node.excess = node.excess, None
        if excess is None or excess.is_reported:
            return
        if excess.lasting is None:
            self.allow("settling")
        elif excess.has_ended:
            self.allow("ended")
        else:
            yield excess.lasting

    def _lasting(self, name: str, node: _Node, excess: _Excess, now: float) -> Violation | None:
        """Return the violation by an excess that has lasted, unless a pod explains it that was preempted."""
        seconds = self._seconds(name, excess.since, now)
        if seconds < SETTLE_SECONDS:
            return None
        if seconds < REPORTED_SECONDS and not node.exceeded(self._preempted):
            self.allow("preempted")
            return None
        parts = [
            f"{each}: {node.total.get(each, 0)} of {node.allocatable.get(each, 0)}"
            for each in node.exceeded()
        ]
        unit = " (cpu in milli-units)" if "cpu" in node.exceeded() else ""
        return self.violation(
            f"more is allocated on node {name!r} than allocatable for {seconds:.0f} s: "
            f"{', '.join(parts)}{unit}",
            excess.revision,
            objects=(f"Node {name}", *[share.subject for share in node.shares.values()][:OBJECTS_MAX]),
        )

    def _seconds(self, name: str, since: float, now: float) -> float:
        """Return for how long a kubelet has had the chance to report its pods."""
        begin, end = self._leases.time_of_kubelet(name, since, now)
        return self.served_time.between(begin, end) if begin < end else 0.0

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report the excess that is left."""
        for name, node in self._nodes.items():
            excess = node.excess
            if not node.exists or excess is None or excess.is_reported or not node.exceeded():
                continue
            violation = self._lasting(name, node, excess, evidence.now)
            if violation is not None:
                yield violation


def _allocated(pod: core.Pod, former: Resources | None) -> Resources | None:
    """Return the allocated resources of a pod; None for nothing. `former` are those before."""
    if is_terminal(pod) or not _is_admitted(pod):
        return None
    statuses = [*pod.status.containerStatuses, *pod.status.initContainerStatuses]
    if former is not None and not any(status.HasField("resources") for status in statuses):
        return former
    requests = pod_requests(pod, use_status=True, use_desired=False, pod_level_status=True)
    of_devices = {each.resourceName for each in pod.status.extendedResourceClaimStatus.requestMappings}
    return {**{name: number for name, number in requests.items() if name not in of_devices}, PODS: 1}


def _is_admitted(pod: core.Pod) -> bool:
    """Return whether the kubelet reports containers of the pod."""
    return bool(pod.status.containerStatuses or pod.status.initContainerStatuses)
