"""Count the matching pods of each topology domain: the tables that PodTopologySpread decides by.

Source: kube-scheduler 1.36, PodTopologySpread, preFilterState and preScoreState.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.node_affinity import RequiredNodeAffinity
from nominee.machinery.scheduling.taints import FORBIDDING, is_tolerated
from nominee.scheduler.framework.cluster.columns import Column
from nominee.scheduler.framework.cluster.label_groups import pods_matching, pods_matching_by_domain
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo, Taint
from nominee.scheduler.plugins.nodes.node_affinity import selector_mask
from nominee.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Which nodes count, by the pod's affinity and tolerations, where a constraint honours them."""

    required: RequiredNodeAffinity
    tolerations: Sequence[core.Toleration]
    comparison: bool  # TaintTolerationComparisonOperators

    @classmethod
    def of(cls, pod: PodInfo, *, comparison: bool) -> Inclusion:
        return cls(RequiredNodeAffinity.of(pod.pod), pod.pod.spec.tolerations, comparison)

    def allows(self, constraint: Constraint, node: NodeInfo) -> bool:
        if constraint.honors_affinity and not self.required.matches(node.labels, node.name):
            return False
        return not constraint.honors_taints or self._tolerates(node.taints)

    def _tolerates(self, taints: Sequence[Taint]) -> bool:
        return all(
            effect not in FORBIDDING
            or is_tolerated(
                self.tolerations,
                core.Taint(key=key, value=value, effect=effect),
                comparison=self.comparison,
            )
            for key, value, effect in taints
        )

    def mask(self, constraint: Constraint, snapshot: Snapshot) -> Mask | None:
        """Return a mask of the rows that count; None: all."""
        rows = slice(0, len(snapshot))
        masks: list[Mask] = []
        if constraint.honors_affinity:
            for key, value in self.required.node_selector:
                column = snapshot.label_column(key)
                masks.append(column.ids[rows] == column.id_of(value))
            if self.required.affinity is not None:
                masks.append(selector_mask(snapshot, self.required.affinity, rows))
        if constraint.honors_taints and snapshot.tainted_count:
            masks.append(snapshot.column("taints", lambda info: info.taints).mask(self._tolerates, rows))
        return _all_of(masks)


def _all_of(masks: list[Mask]) -> Mask | None:
    if not masks:
        return None
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)


def _having_labels(constraints: Sequence[Constraint], snapshot: Snapshot) -> Mask | None:
    """Return the rows whose nodes have all the topology labels; None: all have."""
    masks = []
    for constraint in constraints:
        column = snapshot.label_column(constraint.key)
        missing = column.id_of(None)
        if missing >= 0:
            masks.append(column.ids[: len(snapshot)] != missing)
    return _all_of(masks)


def matching_pods(constraint: Constraint, namespace: str, snapshot: Snapshot) -> Counts:
    """Count the matching pods as `[nodes]`.

    An empty selector counts none, though it matches the pod itself (an upstream quirk).
    """
    if constraint.selector.empty:
        return np.zeros(len(snapshot), dtype=np.int64)
    return pods_matching(snapshot, namespace, constraint.selector)


class Domains:
    """Pods by domain of one hard constraint. Domains are numbered as the label's column numbers values."""

    __slots__ = ("_eligible", "_lowest", "column", "constraint", "counts", "missing", "own")

    def __init__(
        self,
        constraint: Constraint,
        column: Column,
        counts: Counts,
        eligible: Mask,
        own: int,
    ) -> None:
        self.constraint = constraint
        self.column = column
        self.counts = counts  # by domain; 0 where no node counts
        self._eligible = eligible  # by domain: whether some node counts
        self.own = own  # 1 if the constraint's selector matches the pod itself
        self.missing = column.id_of(None)  # the number of "no such label", -1 if every node has it
        self._lowest: int | None = None

    @classmethod
    def count(
        cls, constraint: Constraint, pod: PodInfo, snapshot: Snapshot, included: Mask | None
    ) -> Domains:
        """Count the matching pods by domain; `included`: the rows that count, None: all."""
        column = snapshot.label_column(constraint.key)
        own = int(constraint.selector.matches(pod.labels))
        if included is None and not constraint.selector.empty:
            selector, label = constraint.selector, constraint.key
            counts = pods_matching_by_domain(snapshot, pod.namespace, selector, label).copy()
            return cls(constraint, column, counts, column.is_used(), own)
        ids = column.ids[: len(snapshot)]
        pods = matching_pods(constraint, pod.namespace, snapshot)
        if included is not None:
            ids, pods = ids[included], pods[included]
        size = len(column.values)
        eligible = np.bincount(ids, minlength=size) > 0
        counts = np.bincount(ids, weights=pods, minlength=size).astype(np.int64)
        return cls(constraint, column, counts, eligible, own)

    def clone(self) -> Domains:
        other = Domains(self.constraint, self.column, self.counts.copy(), self._eligible, self.own)
        other._lowest = self._lowest
        return other

    def add(self, value: str, change: int) -> None:
        """Count pods that came to a domain or left it, in a simulation."""
        number = self.column.id_of(value)
        if 0 <= number < len(self.counts):
            self.counts[number] += change
            self._lowest = None

    @property
    def lowest(self) -> int:
        """Return the fewest pods of a domain; 0 while there are fewer domains than minDomains."""
        if self._lowest is None:
            counts = self.counts[self._eligible]
            enough = 0 < len(counts) >= self.constraint.min_domains
            self._lowest = int(counts.min()) if enough else 0
        return self._lowest

    @property
    def room(self) -> int:
        """Return how many pods a domain may have for one more to be allowed."""
        return self.constraint.max_skew + self.lowest - self.own

    def allows(self, value: str) -> bool:
        number = self.column.id_of(value)
        count = int(self.counts[number]) if 0 <= number < len(self.counts) else 0
        return count <= self.room

    def mask(self, rows: NDArray[np.intp] | slice) -> tuple[Mask | None, Mask]:
        """Return which of these rows have the label (None: all), and which have a domain with room."""
        ids = self.column.ids[rows]
        with_room: Mask = (self.counts <= self.room)[ids]
        return (None if self.missing < 0 else ids != self.missing), with_room


class HardState:
    """The state that PreFilter leaves for Filter. A clone can be changed by itself."""

    __slots__ = ("domains", "inclusion")

    def __init__(self, domains: list[Domains], inclusion: Inclusion) -> None:
        self.domains = domains
        self.inclusion = inclusion

    @classmethod
    def count(
        cls, constraints: Sequence[Constraint], pod: PodInfo, snapshot: Snapshot, inclusion: Inclusion
    ) -> HardState:
        """Count the pods by domain for each constraint."""
        labelled = _having_labels(constraints, snapshot)
        found = []
        for constraint in constraints:
            masks = (labelled, inclusion.mask(constraint, snapshot))
            included = _all_of([mask for mask in masks if mask is not None])
            found.append(Domains.count(constraint, pod, snapshot, included))
        return cls(found, inclusion)

    def clone(self) -> HardState:
        return HardState([each.clone() for each in self.domains], self.inclusion)

    def add(self, pod: PodInfo, other: PodInfo, node: NodeInfo, change: int) -> None:
        """Count another pod that came to the node or left it, even a terminating one."""
        if other.namespace != pod.namespace:
            return
        labels = node.labels
        if any(each.constraint.key not in labels for each in self.domains):
            return
        for each in self.domains:
            constraint = each.constraint
            if constraint.selector.matches(other.labels) and self.inclusion.allows(constraint, node):
                each.add(labels[constraint.key], change)


@dataclass(frozen=True, slots=True)
class SoftDomains:
    """One soft constraint: the cost of a node's domain, by the value of its label.

    For host names the pods are counted node by node, whatever the label says.
    """

    constraint: Constraint
    weight: float
    column: Column
    counts: Counts  # by domain; by row for host names

    def costs(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the costs of rows, 0 where a node lacks the label."""
        ids = self.column.ids[rows]
        counts = self.counts[rows] if self.constraint.key == HOSTNAME else self.counts[ids]
        found = counts.astype(np.float64) * self.weight + float(self.constraint.max_skew - 1)
        missing = self.column.id_of(None)
        if missing >= 0:
            found[ids == missing] = 0.0
        return found


@dataclass(frozen=True, slots=True)
class SoftState:
    """The state that PreScore leaves for Score. `ignored`: the scored rows that lack a label."""

    domains: tuple[SoftDomains, ...]
    ignored: Mask | None

    @classmethod
    def count(
        cls,
        constraints: Sequence[Constraint],
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        inclusion: Inclusion,
        *,
        all_labels: bool,
    ) -> SoftState:
        """Count the pods by domain; `all_labels` leaves out nodes without one of the labels."""
        labelled = _having_labels(constraints, snapshot) if all_labels else None
        ignored, scored = None, rows
        if labelled is not None:
            ignored = ~labelled[rows]
            scored = rows[~ignored]
        found = []
        for constraint in constraints:
            pods = matching_pods(constraint, pod.namespace, snapshot)
            column = snapshot.label_column(constraint.key)
            if constraint.key == HOSTNAME:
                found.append(SoftDomains(constraint, _weight(len(scored)), column, pods))
                continue
            ids = _domains_of(column, len(snapshot))
            size = len(np.unique(ids[scored]))
            masks = (labelled, inclusion.mask(constraint, snapshot))
            included = _all_of([mask for mask in masks if mask is not None])
            if included is not None:
                ids, pods = ids[included], pods[included]
            counts = np.bincount(ids, weights=pods, minlength=len(column.values)).astype(np.int64)
            found.append(SoftDomains(constraint, _weight(size), column, counts))
        return cls(tuple(found), ignored)


def _domains_of(column: Column, size: int) -> NDArray[np.int32]:
    """Return the domains by row; a node without the label has the domain of an empty label."""
    ids = column.ids[:size]
    missing, empty = column.id_of(None), column.id_of("")
    if missing >= 0 and empty >= 0:
        return np.where(ids == missing, np.int32(empty), ids)
    return ids


def _weight(domains: int) -> float:
    """Return the weight of a topology: less with few domains, as each of them has more pods."""
    return math.log(domains + 2)
