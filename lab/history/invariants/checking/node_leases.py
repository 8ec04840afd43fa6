"""Which nodes have a kubelet, by the leases that it renews (KEP-589)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE

NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40.0
"""The kubelet's default of nodeLeaseDurationSeconds; it renews four times as often."""


@dataclass(slots=True)
class _Renewals:
    """The renewals of one lease without an interruption of more than LEASE_SECONDS."""

    first: float
    last: float


class NodeLeases:
    """Takes the revisions of leases; no lease is decoded."""

    def __init__(self) -> None:
        self._renewals: dict[str, _Renewals] = {}

    def observe(self, revision: Revision) -> None:
        """Note the renewal of a node's lease."""
        if revision.kind is not LEASE or revision.namespace != NAMESPACE:
            return
        known = self._renewals.get(revision.name)
        if revision.value is None:
            self._renewals.pop(revision.name, None)
        elif known is None or revision.time - known.last > LEASE_SECONDS:
            self._renewals[revision.name] = _Renewals(revision.time, revision.time)
        else:
            known.last = revision.time

    def had_kubelet(self, node: str, now: float, seconds: float) -> bool:
        """Return whether the node had a kubelet for the last `seconds` before `now`.

        It may have died less than LEASE_SECONDS ago.
        """
        known = self._renewals.get(node)
        return known is not None and now - known.last <= LEASE_SECONDS and now - known.first >= seconds

    def time_of_kubelet(self, node: str, begin: float, end: float) -> tuple[float, float]:
        """Return the last part of a time in which the node had a kubelet; all of it without a lease.

        It ends with the last renewal if that was more than LEASE_SECONDS ago.
        """
        known = self._renewals.get(node)
        if known is None:
            return begin, end
        return max(begin, known.first), known.last if end - known.last > LEASE_SECONDS else end
