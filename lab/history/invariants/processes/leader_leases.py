"""Terms of leaders do not overlap: a lease and its holder's term run out before another takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.leaders import WRITES, identity_end, leaves_spec
from nominee.lab.history.invariants.checking.node_leases import NAMESPACE
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, LEASE
from nominee.machinery.api.pb import coordination
from nominee.machinery.runtime.clock import from_time

TOLERANCE_SECONDS: Final = 1.0
"""Of the times at which the history has the writes."""


class LeaderLeases(Checker):
    """Compares the times of the writes: those in the lease are of different clocks.

    A renewal changes the spec. Candidates do not see other writes (of labels, say): they compare the record.

    A leader that has not renewed its lease for the whole duration has stopped leading. A renewal that was
    sent in time may arrive late, and a clock may jump: only one that is late by the times of the writes and
    by its own renewTime shows a leader that went on. A candidate that holds the lease and has no answer to
    tell it so goes on to renew it, however late: it does not lead, and writes nothing else.
    Source: client-go 1.36, tools/leaderelection (RenewDeadline is less than LeaseDuration), and its
    resourcelock/leaselock.go (Get returns the spec only).
    """

    about = Invariant(
        name="leases-run-out",
        description="A leader's lease gets another holder only after its leaseDurationSeconds without a "
        "renewal, or after the leader has released it. Its holder does not renew it when it has run out.",
        checks="writes of leases with a holder",
        exceptions={
            "before-history": "the history does not have the former renewal",
            "unanswered": "the holder had not renewed the lease since it took it: the answer may have been "
            "lost, and the holder may have read later that it is one",
            "never-led": "the holder has written nothing else: the answers to its renewals may have been "
            "lost, too, and it was still trying to become the leader",
        },
    )
    takes_answers = True
    needs_answers = False
    kinds = frozenset({LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._renewals: dict[str, Revision] = {}
        self._writers: set[str] = set()
        """The ends of the identities of processes that have sent a write of another kind, as leaders do."""

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Note which process has sent a write."""
        if answer.method in WRITES and answer.kind not in (LEASE, EVENT):
            self._writers.add(identity_end(answer))
        yield from ()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check a write of a lease."""
        if revision.namespace == NAMESPACE:
            return
        former = self._renewals.get(revision.key)
        lease, before = revision.after(LEASE), revision.before(LEASE)
        if lease is None or revision.is_state:
            self._renewals.pop(revision.key, None)
        elif not leaves_spec(revision):
            self._renewals[revision.key] = revision
        if lease is None:
            return
        holder = lease.spec.holderIdentity
        if not holder:
            return
        self.checked += 1
        if before is None or not before.spec.holderIdentity:
            return
        if before.spec.holderIdentity == holder:
            yield from self._check_renewal(former, revision)
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

    def _check_renewal(self, former: Revision | None, revision: Revision) -> Iterator[Violation]:
        before, lease = revision.before(LEASE), revision.after(LEASE)
        if former is None or before is None or lease is None or _is_new_term(before, lease):
            return
        if before.spec.renewTime == before.spec.acquireTime:
            self.allow("unanswered")
            return
        duration = before.spec.leaseDurationSeconds + TOLERANCE_SECONDS
        seconds = revision.time - former.time
        own_seconds = from_time(lease.spec.renewTime) - from_time(before.spec.renewTime)
        if min(seconds, own_seconds) <= duration:
            return
        if self.settings.observes_answers and not lease.spec.holderIdentity.endswith(tuple(self._writers)):
            self.allow("never-led")
        else:
            yield self.violation(
                f"{lease.spec.holderIdentity} renewed the lease {seconds:.1f} s after it had renewed it for "
                f"{before.spec.leaseDurationSeconds} s: it went on after its term",
                former,
                revision,
            )


def _is_new_term(before: coordination.Lease, lease: coordination.Lease) -> bool:
    """Return whether the holder has acquired the lease again."""
    return (
        before.spec.acquireTime != lease.spec.acquireTime
        or before.spec.leaseTransitions != lease.spec.leaseTransitions
    )
