"""The autoscaler removes no node that was needed a moment ago."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, ScaleDown
from nominee.lab.history.invariants.checking.pods import ended_pod, is_expendable, is_terminal
from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD, RESOURCE_SLICE
from nominee.machinery.api.objects import condition_is, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import Resources, node_allocatable, pod_requests

_GPU: Final = "nvidia.com/gpu"
_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
_SEEN_SECONDS: Final = 7.0
"""How long a node may be in use, beside a loop, and the autoscaler does not see it.

One that is cut off from the API server for 5 s watches pods again up to 1.5 s later.
"""


_GRACE_SECONDS: Final = 30
"""The grace period of a pod that names none."""
_LONG_SECONDS: Final = 30.0
"""A pod that terminates for so long after its grace period counts no more for the autoscaler."""


@dataclass(slots=True)
class _Use:
    """Since when a node is in use, and when the autoscaler can have seen that the last time."""

    last: float
    since: float | None = None

    def follow(self, now: float, seconds: float, *, is_used: bool) -> None:
        """Note that time has passed, `seconds` of it since the use began, and whether the node is in use."""
        if self.since is not None and seconds >= 0.0:
            self.last = now
        self.since = (now if self.since is None else self.since) if is_used else None


@dataclass(slots=True)
class _Node:
    """A node with the requests of its pods by uid, and its use: by all pods, and by those that stay."""

    by_all: _Use
    by_staying: _Use
    allocatable: Resources = field(default_factory=dict)
    pods: dict[str, Resources] = field(default_factory=dict)
    terminating: dict[str, float] = field(default_factory=dict)
    """Until when each pod that terminates counts at most, by the clock of the API server."""
    until: float = float("-inf")
    """The same of pods that are gone, the last of them."""
    is_tainted: bool = False

    def follow(self, options: ScaleDown, now: float, served_time: ServedTime) -> None:
        """Note that time has passed, and whether the node is in use now: too much of it is asked for."""
        staying = [pod for uid, pod in self.pods.items() if uid not in self.terminating]
        for use, pods in ((self.by_all, list(self.pods.values())), (self.by_staying, staying)):
            seconds = 0.0 if use.since is None else served_time.between(use.since, now)
            is_used = any(
                sum(pod.get(name, 0) for pod in pods) > options.threshold * self.allocatable.get(name, 0)
                for name in ("cpu", "memory")
            )
            use.follow(now, seconds - _SEEN_SECONDS - options.scan_seconds, is_used=is_used)

    def last_use(self, ahead: float) -> float:
        """Return when an autoscaler whose clock is ahead can have seen the node in use the last time."""
        return min(self.by_all.last, max(self.by_staying.last, self.until - ahead))


class UnneededNodes(Checker):
    """Compares the time of the autoscaler's taint with the end of the node's last use.

    Less than the threshold must have been asked for in each loop of the unneeded time. A node that is not
    ready has another time, and one with devices or GPUs another measure: they are left out, and so are nodes
    with pods that terminate. One that terminated for long counted no more before it was gone; how far the
    clock was ahead that decided this, the value of the taint shows, which is the autoscaler's time. A resize
    counts as it does for the scheduler: the most of desired, allocated and actual, and no desire that is
    infeasible.
    Source: cluster-autoscaler 1.36, core/scaledown/unneeded and eligibility, simulator/utilization,
    utils/pod (PodRequests), utils/drain (IsPodLongTerminating).
    """

    about = Invariant(
        name="removed-nodes-were-unneeded",
        description="The autoscaler removes a node only when for --scale-down-unneeded-time no more than "
        "--scale-down-utilization-threshold of it was in use.",
        checks="taints of nodes that are ready",
    )
    kinds = frozenset({POD, NODE, RESOURCE_SLICE})
    reads_settings = True
    reads_scale_down = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._nodes: dict[str, _Node] = {}
        self._with_devices: set[str] = set()
        self._terminating: dict[str, str] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod, or check the taint of a node."""
        if self.settings.scale_down is None:
            return
        if revision.kind is NODE:
            yield from self._observe_node(revision)
        elif revision.kind is POD:
            self._observe_pod(revision)
        elif (found := revision.after(RESOURCE_SLICE)) is not None:
            self._with_devices.add(found.spec.nodeName)

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod = ended_pod(revision), revision.after(POD)
        for each in (ended, pod):
            node = self._nodes.get(each.spec.nodeName) if each is not None else None
            if each is None or node is None or self.settings.scale_down is None:
                continue
            uid = each.metadata.uid
            if each is pod and not is_terminal(pod) and not is_expendable(pod, self.settings.scale_down):
                node.pods[uid] = pod_requests(pod, use_status=True, pod_level_status=True)
            else:
                node.pods.pop(uid, None)
            if uid in node.pods and is_terminating(each):
                self._terminating[uid] = each.spec.nodeName
                until = _counts_until(each)
                node.terminating[uid] = min(node.terminating.get(uid, until), until)
            else:
                self._terminating.pop(uid, None)
                node.until = max(node.until, node.terminating.pop(uid, node.until))
            node.follow(self.settings.scale_down, revision.time, self.served_time)

    def _observe_node(self, revision: Revision) -> Iterator[Violation]:
        name, obj, options = revision.name, revision.after(NODE), self.settings.scale_down
        if obj is None or options is None:
            self._nodes.pop(name, None)
            return
        begin = float("-inf") if revision.is_state else revision.time
        node = self._nodes.setdefault(name, _Node(_Use(begin), _Use(begin)))
        allocatable = node_allocatable(obj)
        if allocatable != node.allocatable:
            node.follow(options, revision.time, self.served_time)  # it was in use until now
            node.allocatable = allocatable
            node.follow(options, revision.time, self.served_time)
        was_tainted, node.is_tainted = node.is_tainted, any(each.key == _TAINT for each in obj.spec.taints)
        if was_tainted or not node.is_tainted or not condition_is(obj.status.conditions, "Ready"):
            return
        if name in self._with_devices or _GPU in allocatable or name in self._terminating.values():
            return
        self.checked += 1
        node.follow(options, revision.time, self.served_time)
        seconds = revision.time - node.last_use(_ahead(obj, revision.time))
        if seconds < options.unneeded_seconds:
            problem = f"the autoscaler removes the node {seconds:.1f} s after it was needed"
            option = f"--scale-down-unneeded-time={options.unneeded_seconds:g}s"
            yield self.violation(f"{problem}, with {option}", revision)


def _counts_until(pod: core.Pod) -> float:
    """Return when a pod that terminates does not count any more, in seconds since the epoch."""
    is_given = pod.spec.HasField("terminationGracePeriodSeconds")
    grace = pod.spec.terminationGracePeriodSeconds if is_given else _GRACE_SECONDS
    return pod.metadata.deletionTimestamp.seconds + grace + _LONG_SECONDS


def _ahead(node: core.Node, now: float) -> float:
    """Return by how many seconds the clock of the autoscaler is ahead that has tainted the node now."""
    values = [taint.value for taint in node.spec.taints if taint.key == _TAINT]
    return max([0.0, *(float(value) - now for value in values if value.isdecimal())])
