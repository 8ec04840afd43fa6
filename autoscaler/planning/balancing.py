"""An order over several node groups that are alike. Source: cluster-autoscaler 1.36, nodegroupset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.planning.observation import NodeGroup
from scheduler.framework.resource_columns import CPU, MEMORY
from scheduler.framework.types import NodeInfo

MEMORY_RATIO = 0.015
FREE_RATIO = 0.05
_IGNORED_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
        "nominee.dev/node-group",
    )
)


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """A group and the size that it is to have."""

    group: NodeGroup
    size: int

    @property
    def delta(self) -> int:
        return self.size - self.group.target

    def __str__(self) -> str:
        return f"{{{self.group.id} {self.group.target}->{self.size} (max: {self.group.max})}}"


def balance(groups: Sequence[NodeGroup], count: int) -> list[ScaleUp]:
    """So many nodes, each to the group that is the smallest by then; fewer when all are full."""
    sizes = {group.id: group.target for group in groups}
    for _ in range(count):
        open_groups = [group for group in groups if sizes[group.id] < group.max]
        if not open_groups:
            break
        smallest = min(open_groups, key=lambda group: sizes[group.id])
        sizes[smallest.id] += 1
    return [ScaleUp(group, sizes[group.id]) for group in groups if sizes[group.id] > group.target]


def similar(one: NodeInfo, other: NodeInfo) -> bool:
    """Nodes with the same resources, about the same free, and equal labels but for place and name."""
    if one.allocatable_of(CPU) != other.allocatable_of(CPU):
        return False
    if not _close(one.allocatable_of(MEMORY), other.allocatable_of(MEMORY), MEMORY_RATIO):
        return False
    for column in (CPU, MEMORY):
        free = [info.allocatable_of(column) - info.requested_of(column) for info in (one, other)]
        if not _close(free[0], free[1], FREE_RATIO):
            return False
    return _labels(one) == _labels(other)


def _close(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= max(one, other) * ratio


def _labels(info: NodeInfo) -> dict[str, str]:
    return {key: text for key, text in info.labels.items() if key not in _IGNORED_LABELS}
