"""Remember in memory which pods were chosen as victims for a resize (KEP-5836, Option 2).

A restarted scheduler knows none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cachetools import LRUCache

from nominee.scheduler.framework.types import NodeInfo, PodInfo

PREEMPTORS_MAX: Final = 10_000  # the least recently used is dropped


class ChosenVictims:
    """The victims by preemptor (uids)."""

    def __init__(self) -> None:
        self._by_preemptor: LRUCache[str, frozenset[str]] = LRUCache(PREEMPTORS_MAX)

    def note(self, preemptor: PodInfo, victims: Iterable[PodInfo]) -> None:
        """Enter the victims of one preemption instead of those of an earlier one."""
        self._by_preemptor[preemptor.uid] = frozenset(victim.uid for victim in victims)

    def are_terminating(self, preemptor: PodInfo, node: NodeInfo | None) -> bool:
        """Return whether one of the preemptor's victims is still terminating on the node."""
        chosen = self._by_preemptor.get(preemptor.uid)
        if not chosen or node is None:
            return False
        if any(uid in node.pods and node.pods[uid].is_terminating for uid in chosen):
            return True
        del self._by_preemptor[preemptor.uid]
        return False
