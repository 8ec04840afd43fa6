"""Count the pods of each node that a label selector matches, kept up to date as pods come and go.

Pods are grouped by namespace and labels: the pods of one workload are one group, so a selector is compared
with few groups instead of with every pod of the cluster. The counts of the latest selectors are kept and
corrected with each change, since a workload's pods have the same one.

Terminating pods are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.domain_sums import DomainSums

if TYPE_CHECKING:
    from nominee.machinery.api.selectors import LabelSelector
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.types import NodeInfo, PodInfo

ANSWERS_MAX = 32  # the least recently used is dropped
_KEY = "label groups"

Question = tuple[str, "LabelSelector"]  # namespace, selector
Counts = NDArray[np.int64]


def pods_matching(snapshot: Snapshot, namespace: str, selector: LabelSelector) -> Counts:
    """Return `[nodes]`: the pods of a namespace that match. Read only, until the snapshot changes."""
    groups = snapshot.follower(_KEY, LabelGroups)
    return groups.ask(namespace, selector, snapshot.row_of)[: len(snapshot)]


def pods_matching_by_domain(
    snapshot: Snapshot, namespace: str, selector: LabelSelector, label: str
) -> Counts:
    """Return the pods that match by the ids of a label's column. Read only, until the snapshot changes."""
    groups = snapshot.follower(_KEY, LabelGroups)
    return groups.ask_by_domain(namespace, selector, label, snapshot)


class _Group:
    """Pods of equal labels in one namespace: how many each node has, by node name."""

    __slots__ = ("by_node", "labels")

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels = labels
        self.by_node: dict[str, int] = {}


class _Answer:
    __slots__ = ("by_domain", "counts", "groups")

    def __init__(self, capacity: int) -> None:
        self.by_domain = DomainSums()
        self.counts: Counts = np.zeros(capacity, dtype=np.int64)
        self.groups: set[_Group] = set()  # those that match


class LabelGroups:
    """A follower of a snapshot; see `pods_matching`."""

    follows_pods = True

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._pods: list[dict[str, PodInfo]] = []  # by row: what has been counted
        self._names: list[str] = []  # by row
        self._groups: dict[str, dict[frozenset[tuple[str, str]], _Group]] = {}  # by namespace
        self._answers: LRUCache[Question, _Answer] = LRUCache(ANSWERS_MAX)

    def ask(self, namespace: str, selector: LabelSelector, row_of: dict[str, int]) -> Counts:
        """Return counts by row; the array is longer than there are rows."""
        return self._answer(namespace, selector, row_of).counts

    def ask_by_domain(
        self, namespace: str, selector: LabelSelector, label: str, snapshot: Snapshot
    ) -> Counts:
        """Return counts by the ids of the label's column."""
        answer = self._answer(namespace, selector, snapshot.row_of)
        return answer.by_domain.of(snapshot, label, answer.counts[: len(snapshot)])

    def _answer(self, namespace: str, selector: LabelSelector, row_of: dict[str, int]) -> _Answer:
        question = (namespace, selector)
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self._find(namespace, selector, row_of)
        return answer

    def _find(self, namespace: str, selector: LabelSelector, row_of: dict[str, int]) -> _Answer:
        answer = _Answer(self._capacity)
        for group in self._groups.get(namespace, {}).values():
            if selector.matches(group.labels):
                answer.groups.add(group)
                size = len(group.by_node)
                rows = np.fromiter((row_of[name] for name in group.by_node), dtype=np.intp, count=size)
                answer.counts[rows] += np.fromiter(group.by_node.values(), dtype=np.int64, count=size)
        return answer

    # Following the snapshot

    def append(self, row: int, info: NodeInfo) -> None:
        self._pods.append(info.pods.copy())
        self._names.append(info.name)
        for pod in info.pods.values():
            self._count(row, pod, 1)

    def replace(self, row: int, info: NodeInfo) -> None:
        """Count the pods of a row again where they differ from the former ones."""
        former, present = self._pods[row], info.pods
        if former == present:
            return
        self._pods[row] = present.copy()
        for uid, pod in former.items():
            if present.get(uid) is not pod:
                self._count(row, pod, -1)
        for uid, pod in present.items():
            if former.get(uid) is not pod:
                self._count(row, pod, 1)

    def drop(self, row: int, size: int) -> None:
        self._answers.clear()
        for pod in self._pods[row].values():
            self._count(row, pod, -1)
        del self._pods[row], self._names[row]

    def reorder(self, order: NDArray[np.intp]) -> None:
        self._answers.clear()
        rows = order.tolist()
        self._pods = [self._pods[row] for row in rows]
        self._names = [self._names[row] for row in rows]

    def grow(self, capacity: int) -> None:
        self._answers.clear()
        self._capacity = capacity

    def _count(self, row: int, pod: PodInfo, change: int) -> None:
        if pod.is_terminating:
            return
        groups = self._groups.setdefault(pod.namespace, {})
        key = frozenset(pod.labels.items())
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(pod.labels)
            for (namespace, selector), answer in self._answers.items():
                if namespace == pod.namespace and selector.matches(group.labels):
                    answer.groups.add(group)
        name = self._names[row]
        total = group.by_node.get(name, 0) + change
        if total:
            group.by_node[name] = total
        else:
            del group.by_node[name]
        is_over = not group.by_node
        for answer in self._answers.values():
            if group in answer.groups:
                answer.counts[row] += change
                answer.by_domain.add(row, change)
                if is_over:
                    answer.groups.discard(group)
        if is_over:
            del groups[key]
            if not groups:
                del self._groups[pod.namespace]
