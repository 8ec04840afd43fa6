"""Scale-up balanced between similar node groups. Pure.

Source: cluster-autoscaler 1.36, processors/nodegroupset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nominee.autoscaler.planning.objects.observation import NodeGroup
from nominee.scheduler.framework.resource_columns import CPU, MEMORY
from nominee.scheduler.framework.types import NodeInfo

MEMORY_DIFFERENCE_RATIO_MAX = 0.015
FREE_DIFFERENCE_RATIO_MAX = 0.05
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
class ScaleUpInfo:
    """A group and its new target size."""

    group: NodeGroup
    new_size: int

    @property
    def delta(self) -> int:
        """Number of nodes to add."""
        return self.new_size - self.group.target

    def __str__(self) -> str:
        return f"{{{self.group.id} {self.group.target}->{self.new_size} (max: {self.group.max})}}"


def balance_between_groups(groups: Sequence[NodeGroup], count: int) -> list[ScaleUpInfo]:
    """Distribute `count` new nodes, each to the smallest group by then; fewer if all groups are full."""
    sizes = {group.id: group.target for group in groups}
    for _ in range(count):
        open_groups = [group for group in groups if sizes[group.id] < group.max]
        if not open_groups:
            break
        smallest = min(open_groups, key=lambda group: sizes[group.id])
        sizes[smallest.id] += 1
    return [ScaleUpInfo(group, sizes[group.id]) for group in groups if sizes[group.id] > group.target]


def is_similar(one: NodeInfo, other: NodeInfo) -> bool:
    """Report whether two template nodes have similar resources and equal labels.

    CPU must be equal; memory and what is free of both may differ by a small ratio. Labels of zones and names
    are ignored.
    """
    if one.allocatable_of(CPU) != other.allocatable_of(CPU):
        return False
    if not _within(one.allocatable_of(MEMORY), other.allocatable_of(MEMORY), MEMORY_DIFFERENCE_RATIO_MAX):
        return False
    for column in (CPU, MEMORY):
        free = [info.allocatable_of(column) - info.requested_of(column) for info in (one, other)]
        if not _within(free[0], free[1], FREE_DIFFERENCE_RATIO_MAX):
            return False
    return _compared_labels(one) == _compared_labels(other)


def _within(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= max(one, other) * ratio


def _compared_labels(info: NodeInfo) -> dict[str, str]:
    return {key: text for key, text in info.labels.items() if key not in _IGNORED_LABELS}
