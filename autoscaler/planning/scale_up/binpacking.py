"""Binpacking estimator: how many nodes of a group a set of pods needs. Pure.

First fit, in order of decreasing size. Only new nodes are filled; the existing ones were tried before.
Source: cluster-autoscaler 1.36, binpacking estimator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nominee.autoscaler.planning.scale_up.equivalence import EquivalenceGroup
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.planning.snapshot.template_node import TemplateNode, fresh_node_info
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.resource_columns import CPU, MEMORY
from nominee.scheduler.framework.types import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Variety of the pods of an estimate: the metric's labels, and the number of equivalence groups."""

    instance_type: str
    cpu_count: str
    namespace_count: str
    pod_groups: int

    @classmethod
    def of(cls, template: core.Node, groups: Sequence[EquivalenceGroup]) -> Heterogeneity:
        """Describe an estimate of these pods on nodes like `template`."""
        namespaces = {group.sample.pod.metadata.namespace for group in groups}
        cpus = template.status.capacity["cpu"].string if "cpu" in template.status.capacity else "0"
        instance_type = template.metadata.labels.get("node.kubernetes.io/instance-type", "")
        return cls(instance_type, cpus, str(len(namespaces)), len(groups))


def estimate(
    snapshot: ClusterSnapshot,
    template: TemplateNode,
    groups: Iterable[EquivalenceGroup],
    nodes_max: int,
) -> tuple[int, list[core.Pod]]:
    """Return how many new nodes get pods (`nodes_max` at most), and the pods that fit on them."""
    with snapshot.fork():
        estimation = _Estimation(snapshot, template, nodes_max)
        for group in sorted(groups, key=lambda group: -_score(group.sample, template)):
            estimation.add(group)
        return len(estimation.nodes_with_pods), estimation.pods


class _Estimation:
    """One estimate in progress."""

    def __init__(self, snapshot: ClusterSnapshot, template: TemplateNode, nodes_max: int) -> None:
        self._snapshot, self._template, self._nodes_max = snapshot, template, nodes_max
        self._new_nodes: set[str] = set()
        self._last_node = ""
        self.nodes_with_pods: set[str] = set()
        self.pods: list[core.Pod] = []

    def add(self, group: EquivalenceGroup) -> None:
        """Schedule the pods of a group, on the new nodes so far and then on more, until one does not fit."""
        pending = [(pod, PodInfo(pod)) for pod in group.pods]
        while pending and self._schedule_on_any(*pending[0]):
            pending.pop(0)
        for pod, info in pending:
            if not self._schedule_on_last(pod, info):
                # The pod does not fit on an empty node: it would not fit on another one.
                if self._last_node and self._last_node not in self.nodes_with_pods:
                    return
                if len(self._new_nodes) >= self._nodes_max:
                    return
                self._add_node()
                if not self._schedule_on_last(pod, info):
                    return

    def _schedule_on_any(self, pod: core.Pod, info: PodInfo) -> bool:
        if not self._new_nodes:
            return False
        name = self._snapshot.schedule_pod_on_any_node(info, lambda node: node.name in self._new_nodes)
        if name is None:
            return False
        self.nodes_with_pods.add(name)
        self.pods.append(pod)
        return True

    def _schedule_on_last(self, pod: core.Pod, info: PodInfo) -> bool:
        if not self._last_node or not self._snapshot.schedule_pod(info, self._last_node):
            return False
        self.nodes_with_pods.add(self._last_node)
        self.pods.append(pod)
        return True

    def _add_node(self) -> None:
        info = fresh_node_info(self._template, f"e-{len(self._new_nodes)}")
        self._snapshot.add_node(info)
        self._new_nodes.add(info.name)
        self._last_node = info.name


def _score(pod: PodInfo, template: NodeInfo) -> float:
    """Return the pod's share of an empty node, cpu and memory added."""
    amounts = dict(pod.fit_requests)
    return sum(
        amounts.get(column, 0) / template.allocatable_of(column)
        for column in (CPU, MEMORY)
        if template.allocatable_of(column)
    )
