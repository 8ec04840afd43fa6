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
from nominee.machinery.resources.pod_resources import Resources, node_allocatable, pod_requests

_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
_SEEN_SECONDS: Final = 7.0
"""How long a node may be in use, beside a loop, and the autoscaler does not see it.

One that is cut off from the API server for 5 s watches pods again up to 1.5 s later.
"""


@dataclass(slots=True)
class _Node:
    """A node: the requests of its pods by uid, since when it is in use, and when it was the last time."""

    last_use: float
    """When the autoscaler can have seen it in use; at first the time of its creation."""
    allocatable: Resources = field(default_factory=dict)
    pods: dict[str, Resources] = field(default_factory=dict)
    is_tainted: bool = False
    since: float | None = None

    def follow(self, options: ScaleDown, now: float, served_time: ServedTime) -> None:
        """Note that time has passed, and whether the node is in use now: too much of it is asked for."""
        seen_seconds = _SEEN_SECONDS + options.scan_seconds
        if self.since is not None and served_time.between(self.since, now) >= seen_seconds:
            self.last_use = now
        is_used = any(
            sum(pod.get(name, 0) for pod in self.pods.values())
            > options.threshold * self.allocatable.get(name, 0)
            for name in ("cpu", "memory")
        )
        self.since = (now if self.since is None else self.since) if is_used else None


class UnneededNodes(Checker):
    """Compares the time of the autoscaler's taint with the end of the node's last use.

    Less than the threshold must have been asked for in each loop of the unneeded time. A node that is not
    ready has another time, and one with devices another measure: they are left out, and so are nodes with
    pods that terminate.
    Source: cluster-autoscaler 1.36, core/scaledown/unneeded and eligibility.
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
                node.pods[uid] = pod_requests(pod)
            else:
                node.pods.pop(uid, None)
            if uid in node.pods and is_terminating(each):
                self._terminating[uid] = each.spec.nodeName
            else:
                self._terminating.pop(uid, None)
            node.follow(self.settings.scale_down, revision.time, self.served_time)

    def _observe_node(self, revision: Revision) -> Iterator[Violation]:
        name, obj, options = revision.name, revision.after(NODE), self.settings.scale_down
        if obj is None or options is None:
            self._nodes.pop(name, None)
            return
        node = self._nodes.setdefault(name, _Node(float("-inf") if revision.is_state else revision.time))
        allocatable = node_allocatable(obj)
        if allocatable != node.allocatable:
            node.follow(options, revision.time, self.served_time)  # it was in use until now
            node.allocatable = allocatable
            node.follow(options, revision.time, self.served_time)
        was_tainted, node.is_tainted = node.is_tainted, any(each.key == _TAINT for each in obj.spec.taints)
        if was_tainted or not node.is_tainted or not condition_is(obj.status.conditions, "Ready"):
            return
        if name in self._with_devices or name in self._terminating.values():
            return
        self.checked += 1
        node.follow(options, revision.time, self.served_time)
        seconds = revision.time - node.last_use
        if seconds < options.unneeded_seconds:
            problem = f"the autoscaler removes the node {seconds:.1f} s after it was needed"
            option = f"--scale-down-unneeded-time={options.unneeded_seconds:g}s"
            yield self.violation(f"{problem}, with {option}", revision)
