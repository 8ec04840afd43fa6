"""Scale-up balanced between similar node groups. Pure.

Source: cluster-autoscaler 1.36, processors/nodegroupset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.autoscaler.planning.objects.observation import NodeGroup
from nominee.machinery.api.pb import resource
from nominee.machinery.resources.quantity import Quantity
from nominee.scheduler.framework.resource_columns import FIRST_SCALAR, name_of
from nominee.scheduler.framework.types import NodeInfo

MEMORY_DIFFERENCE_RATIO_MAX = 0.015
ALLOCATABLE_DIFFERENCE_RATIO_MAX = 0.05
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
    """Distribute `count` new nodes, each to a smallest group; fewer if all groups are full.

    The groups are ordered by their size. The first one gets nodes until it is larger than the next one, and
    so on: of groups that have become equal, those that were smaller come first.
    """
    ordered = sorted((group for group in groups if group.target < group.max), key=lambda group: group.target)
    sizes = {group.id: group.target for group in ordered}
    start = at = 0
    for _ in range(count):
        while start < len(ordered) and sizes[ordered[at].id] >= ordered[at].max:
            ordered[start], ordered[at] = ordered[at], ordered[start]
            start += 1
            at = _next(ordered, sizes, start, at)
        if start == len(ordered):
            break
        sizes[ordered[at].id] += 1
        at = _next(ordered, sizes, start, at)
    return [ScaleUpInfo(group, sizes[group.id]) for group in ordered if sizes[group.id] > group.target]


def _next(ordered: Sequence[NodeGroup], sizes: Mapping[str, int], start: int, at: int) -> int:
    """Return the position of the group that gets the next node; `start` is the first one that is not full."""
    has_next = at + 1 < len(ordered)
    return at + 1 if has_next and sizes[ordered[at].id] > sizes[ordered[at + 1].id] else start


def is_similar(one: NodeInfo, other: NodeInfo) -> bool:
    """Report whether two template nodes have similar resources and equal labels.

    Capacities must be equal, except that memory may differ by a small ratio. So may the allocatable and the
    free amounts of each resource. Labels of zones and names are ignored.
    """
    assert one.node is not None
    assert other.node is not None
    status, other_status = one.node.status, other.node.status
    has, other_has = _amounts(status.capacity), _amounts(other_status.capacity)
    memory = [amounts.pop("memory", 0) for amounts in (has, other_has)]
    return (
        has == other_has
        and _within(memory[0], memory[1], MEMORY_DIFFERENCE_RATIO_MAX)
        and _all_within(
            _amounts(status.allocatable), _amounts(other_status.allocatable), ALLOCATABLE_DIFFERENCE_RATIO_MAX
        )
        and _all_within(_free(one), _free(other), FREE_DIFFERENCE_RATIO_MAX)
        and _compared_labels(one) == _compared_labels(other)
    )


def _amounts(quantities: Mapping[str, resource.Quantity]) -> dict[str, int]:
    """Return the amounts in thousandths."""
    return {name: Quantity.parse(quantity.string).milli_value() for name, quantity in quantities.items()}


def _free(info: NodeInfo) -> dict[str, int]:
    """Return the free amounts of cpu, memory and ephemeral storage, and of each other resource in use."""
    return {
        name_of(column): info.allocatable_of(column) - used
        for column, used in enumerate(info.requested)
        if column < FIRST_SCALAR or used
    }


def _all_within(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return one.keys() == other.keys() and all(
        _within(amount, other[name], ratio) for name, amount in one.items()
    )


def _within(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= max(one, other) * ratio


def _compared_labels(info: NodeInfo) -> dict[str, str]:
    return {key: text for key, text in info.labels.items() if key not in _IGNORED_LABELS}
