"""Keep the pods that wait for an event, found by their rejectors.

Most events concern few plugins, and most pods wait for one: an event need not look at all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from machinery.api.objects import ObjectKey
from scheduler.framework.types import QueuedPodInfo

NO_REJECTOR: Final = ""  # stands for the rejector of pods that no plugin rejected


class UnschedulablePods:
    """Pods by key, and by rejector. Gated pods are among them."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, QueuedPodInfo] = {}
        self._indexed: dict[ObjectKey, frozenset[str]] = {}
        self._by_rejector: dict[str, dict[ObjectKey, QueuedPodInfo]] = {}

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
        rejectors = frozenset(info.rejectors or (NO_REJECTOR,))
        before = self._indexed.get(key, frozenset())
        self._pods[key] = info
        self._indexed[key] = rejectors
        for name in before - rejectors:
            self._unindex(name, key)
        for name in rejectors:
            self._by_rejector.setdefault(name, {})[key] = info

    def remove(self, key: ObjectKey) -> QueuedPodInfo | None:
        info = self._pods.pop(key, None)
        if info is not None:
            for name in self._indexed.pop(key):
                self._unindex(name, key)
        return info

    def rejected_by(self, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """Return the pods that one of the plugins rejected, and those without a rejector; each once."""
        found: dict[ObjectKey, QueuedPodInfo] = {}
        for name in (*plugins, NO_REJECTOR):
            found |= self._by_rejector.get(name, {})
        return list(found.values())

    def _unindex(self, name: str, key: ObjectKey) -> None:
        pods = self._by_rejector[name]
        del pods[key]
        if not pods:
            del self._by_rejector[name]
