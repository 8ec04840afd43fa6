"""Group the pods on nodes by namespace and labels: a workload's pods are one group, so few are compared.

Followed only for a new query; see `pod_queries`. Terminating pods count, as pod affinity requires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.inter_pod_affinity.change_follower import ChangeFollower

_Label = tuple[str, str]
_Labels = frozenset[_Label]


class PodGroup:
    """Pods with the same labels in one namespace: one of them, and how many each node has."""

    __slots__ = ("by_node", "example")

    def __init__(self, example: PodInfo) -> None:
        self.example = example
        self.by_node: dict[str, int] = {}


class PodGroups(ChangeFollower):
    """A companion of a snapshot; `follow` it before use."""

    def _reset(self) -> None:
        self._namespaces: set[str] = set()
        # All groups of a namespace (None), and those with a label: small ones are found without the others.
        self._with: dict[tuple[str, _Label | None], dict[_Labels, PodGroup]] = {}
        self._seen: dict[str, dict[str, PodInfo]] = {}  # by node: pods that have been counted, by uid

    def within(self, namespaces: Iterable[str] | None, label: _Label | None) -> Iterator[PodGroup]:
        """Yield the groups of some namespaces (None: of all) that have a label."""
        for namespace in self._namespaces if namespaces is None else namespaces:
            yield from self._with.get((namespace, label), {}).values()

    def _follow_node(self, snapshot: Snapshot, name: str, node: NodeInfo | None) -> None:
        present = {} if node is None else node.pods.copy()
        former = self._seen.get(name, {})
        for uid, pod in former.items():
            if present.get(uid) is not pod:
                self._count(name, pod, -1)
        for uid, pod in present.items():
            if former.get(uid) is not pod:
                self._count(name, pod, 1)
        if present:
            self._seen[name] = present
        else:
            self._seen.pop(name, None)

    def _count(self, name: str, pod: PodInfo, change: int) -> None:
        key = frozenset(pod.labels.items())
        group = self._with.get((pod.namespace, None), {}).get(key)
        if group is None:
            group = PodGroup(pod)
            for label in (None, *key):
                self._with.setdefault((pod.namespace, label), {})[key] = group
            self._namespaces.add(pod.namespace)
        total = group.by_node.get(name, 0) + change
        if total:
            group.by_node[name] = total
            return
        del group.by_node[name]
        if not group.by_node:
            self._forget(pod.namespace, key)

    def _forget(self, namespace: str, key: _Labels) -> None:
        for label in (None, *key):
            place = (namespace, label)
            del self._with[place][key]
            if not self._with[place]:
                del self._with[place]
        if (namespace, None) not in self._with:
            self._namespaces.discard(namespace)
