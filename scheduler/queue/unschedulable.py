"""Keep the pods that wait for an event, found by their rejectors.

Most events concern few plugins, and most pods wait for one: an event need not look at all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nominee.machinery.api.objects import ObjectKey
from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.types import QueuedPodInfo

NO_REJECTOR: Final = ""  # stands for the rejector of pods that no plugin rejected


_Index = tuple[str, str]  # the rejector, and the node of a bound pod, which has a deferred resize, or ""


class UnschedulablePods:
    """Pods by key, by rejector, and bound ones by node. Gated pods are among them."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, QueuedPodInfo] = {}
        self._indexed: dict[ObjectKey, frozenset[_Index]] = {}
        self._by_rejector: dict[_Index, dict[ObjectKey, QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(tuple(self._pods.values()))

    def get(self, key: ObjectKey) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def put(self, info: QueuedPodInfo) -> None:
        """Add the pod, or note that its rejectors may have changed."""
        key = info.pod_info.key
        node = own_node(info.pod)
        indexes = frozenset((name, node) for name in info.rejectors or (NO_REJECTOR,))
        before = self._indexed.get(key, frozenset())
        self._pods[key] = info
        self._indexed[key] = indexes
        for index in before - indexes:
            self._unindex(index, key)
        for index in indexes:
            self._by_rejector.setdefault(index, {})[key] = info

    def remove(self, key: ObjectKey) -> QueuedPodInfo | None:
        info = self._pods.pop(key, None)
        if info is not None:
            for index in self._indexed.pop(key):
                self._unindex(index, key)
        return info

    def rejected_by(self, plugins: Iterable[str], nodes: Iterable[str] | None = None) -> list[QueuedPodInfo]:
        """Return the pods that one of the plugins rejected, and those without a rejector; each once.

        Of bound pods only those of the nodes; None: of all nodes.
        """
        names = (*plugins, NO_REJECTOR)
        if nodes is None:
            indexes = [index for index in self._by_rejector if index[0] in names]
        else:
            indexes = [(name, node) for name in names for node in dict.fromkeys(("", *nodes))]
        found: dict[ObjectKey, QueuedPodInfo] = {}
        # Sorted: names of a set come in another order in each process, and pods are tried in the order found.
        for index in sorted(indexes):
            found |= self._by_rejector.get(index, {})
        return list(found.values())

    def _unindex(self, index: _Index, key: ObjectKey) -> None:
        pods = self._by_rejector[index]
        del pods[key]
        if not pods:
            del self._by_rejector[index]
