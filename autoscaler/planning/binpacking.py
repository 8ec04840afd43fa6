"""How many nodes of one kind a set of pods needs: first fit, the greatest pods first.

Source: cluster-autoscaler 1.36, binpacking estimator. Only new nodes are filled; what is there already has
been tried before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoscaler.planning.equivalence import EquivalenceGroup
from autoscaler.planning.snapshot import ClusterSnapshot
from autoscaler.planning.template_node import TemplateNode
from autoscaler.planning.templates import fresh
from machinery.api.pb import core
from scheduler.framework.resource_columns import CPU, MEMORY
from scheduler.framework.types import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How different the pods of one estimate were: the labels of the metric, and the groups of equal pods."""

    instance_type: str
    cpu_count: str
    namespace_count: str
    pod_groups: int

    @classmethod
    def of(cls, template: core.Node, groups: Sequence[EquivalenceGroup]) -> Heterogeneity:
        """Describe an estimate of these pods on nodes of this kind."""
        namespaces = {group.sample.pod.metadata.namespace for group in groups}
        cpus = template.status.capacity["cpu"].string if "cpu" in template.status.capacity else "0"
        kind = template.metadata.labels.get("node.kubernetes.io/instance-type", "")
        return cls(kind, cpus, str(len(namespaces)), len(groups))


def estimate(
    snapshot: ClusterSnapshot,
    template: TemplateNode,
    groups: Iterable[EquivalenceGroup],
    nodes_max: int,
) -> tuple[int, list[core.Pod]]:
    """How many new nodes get pods, and which pods they get; `nodes_max` nodes at most."""
    with snapshot.fork():
        packing = _Packing(snapshot, template, nodes_max)
        for group in sorted(groups, key=lambda group: -_score(group.sample, template)):
            packing.pack(group)
        return len(packing.filled), packing.placed


class _Packing:
    def __init__(self, snapshot: ClusterSnapshot, template: TemplateNode, nodes_max: int) -> None:
        self._snapshot, self._template, self._nodes_max = snapshot, template, nodes_max
        self._new: set[str] = set()
        self._last = ""
        self.filled: set[str] = set()
        self.placed: list[core.Pod] = []

    def pack(self, group: EquivalenceGroup) -> None:
        """All pods of a group, on nodes that are there and then on new ones, until one does not fit."""
        waiting = [(pod, PodInfo(pod)) for pod in group.pods]
        while waiting and self._fits_existing(*waiting[0]):
            waiting.pop(0)
        for pod, info in waiting:
            if not self._fits_last(pod, info):
                # An empty node that does not take it: another one would not either.
                if self._last and self._last not in self.filled:
                    return
                if len(self._new) >= self._nodes_max:
                    return
                self._add_node()
                if not self._fits_last(pod, info):
                    return

    def _fits_existing(self, pod: core.Pod, info: PodInfo) -> bool:
        if not self._new:
            return False
        name = self._snapshot.place(info, lambda node: node.name in self._new)
        if name is None:
            return False
        self.filled.add(name)
        self.placed.append(pod)
        return True

    def _fits_last(self, pod: core.Pod, info: PodInfo) -> bool:
        if not self._last or not self._snapshot.schedule(info, self._last):
            return False
        self.filled.add(self._last)
        self.placed.append(pod)
        return True

    def _add_node(self) -> None:
        info = fresh(self._template, f"e-{len(self._new)}")
        self._snapshot.add_node(info)
        self._new.add(info.name)
        self._last = info.name


def _score(pod: PodInfo, template: NodeInfo) -> float:
    """The pod's share of a whole node, cpu and memory together."""
    amounts = dict(pod.fit_requests)
    return sum(
        amounts.get(column, 0) / template.allocatable_of(column)
        for column in (CPU, MEMORY)
        if template.allocatable_of(column)
    )
