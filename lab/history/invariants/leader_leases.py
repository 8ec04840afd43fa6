"""A candidate takes a lease over only when its holder has not renewed it for the whole duration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.node_leases import NAMESPACE
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE

TOLERANCE_SECONDS: Final = 1.0
"""Of the times at which the history has the writes."""


class LeaderLeases(Checker):
    """Compares the times of the writes: those in the lease are of different clocks."""

    about = Invariant(
        name="leases-run-out",
        description="A leader's lease gets another holder only after its leaseDurationSeconds without a "
        "renewal, or after the leader has released it.",
        checks="writes of leases with a holder",
        exceptions={"before-history": "the history does not have the former renewal"},
    )
    kinds = frozenset({LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._renewals: dict[str, Revision] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check a write of a lease."""
        if revision.namespace == NAMESPACE:
            return
        former = self._renewals.pop(revision.key, None)
        lease, before = revision.after(LEASE), revision.before(LEASE)
        if lease is None:
            return
        if not revision.is_state:
            self._renewals[revision.key] = revision
        holder = lease.spec.holderIdentity
        if not holder:
            return
        self.checked += 1
        if before is None or before.spec.holderIdentity in ("", holder):
            return
        if former is None:
            self.allow("before-history")
            return
        seconds = revision.time - former.time
        if seconds < before.spec.leaseDurationSeconds - TOLERANCE_SECONDS:
            yield self.violation(
                f"{holder} took the lease {seconds:.1f} s after {before.spec.holderIdentity} had renewed it "
                f"for {before.spec.leaseDurationSeconds} s",
                former,
                revision,
            )
