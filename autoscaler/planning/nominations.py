"""How long each nomination has been seen: what `fixed` holds a node for, and for how long at most. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from machinery.api.pb import core


class Nominations:
    """Since when each (pod, node) pair is known. The field itself carries no time."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._since: dict[tuple[str, str], float] = {}

    def update(self, pods: Iterable[core.Pod], now: float) -> None:
        """The nominated pods of this loop; others are forgotten."""
        seen = [(pod.metadata.uid, pod.status.nominatedNodeName) for pod in pods]
        self._since = {pair: self._since.get(pair, now) for pair in seen}

    def holding(self, now: float) -> frozenset[str]:
        """Uids of the pods whose nomination still holds its node."""
        return frozenset(uid for (uid, _), since in self._since.items() if now - since < self._timeout)
