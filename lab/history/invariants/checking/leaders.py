"""Leases of leader election: renewals, and the time of the last change of a component's leader."""

from __future__ import annotations

from typing import Final

from nominee.lab.history.invariants.checking.answers import Answer, Method
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE

LEADER_SECONDS: Final = 60.0
"""How long after a new leader the writes of the former one may arrive."""

WRITES: Final = frozenset({Method.CREATE, Method.UPDATE, Method.PATCH, Method.DELETE})


def identity_end(answer: Answer) -> str:
    """Return the end of the identity with which the process of a request takes a lease."""
    return f"_{answer.client}_{answer.client_pid}"


def leaves_spec(revision: Revision) -> bool:
    """Return whether a write of a lease is no renewal, as one of labels: candidates compare the spec."""
    before, lease = revision.before(LEASE), revision.after(LEASE)
    return before is not None and lease is not None and before.spec == lease.spec


class Leaders:
    """Takes the revisions of leases, of which one is the component's."""

    def __init__(self, lease: str) -> None:
        self._lease = lease
        self._since = float("-inf")

    def observe(self, revision: Revision) -> None:
        """Note a new leader."""
        if revision.name != self._lease:
            return
        before, lease = revision.before(LEASE), revision.after(LEASE)
        if before is None or lease is None:
            return
        if lease.spec.holderIdentity and before.spec.holderIdentity != lease.spec.holderIdentity:
            self._since = revision.time

    @property
    def since(self) -> float:
        """When the lease got another holder; minus infinity if it has not."""
        return self._since

    def changed_before(self, now: float) -> bool:
        """Return whether there was another leader within LEADER_SECONDS."""
        return now - self._since < LEADER_SECONDS
