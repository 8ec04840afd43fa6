"""A process of a component that elects a leader writes only while it leads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.leaders import WRITES, identity_end, leaves_spec
from nominee.lab.history.invariants.checking.node_leases import NAMESPACE
from nominee.lab.history.revision import Revision, subject_of
from nominee.machinery.api.kinds import EVENT, LEASE


@dataclass(slots=True)
class _Lease:
    """The writes of a lease, with the revisions in order."""

    numbers: list[int] = field(default_factory=list)
    writes: list[Revision] = field(default_factory=list)


class LeaderWrites(Checker):
    """Looks up the term in which a request was sent.

    Which processes elect a leader is known from the leases: a holder's identity ends with the names of its
    process and its pid. Terms are those of the leases' writes, whose times are not the processes' own.
    Source: client-go 1.36, tools/leaderelection (RenewDeadline is less than LeaseDuration).
    """

    about = Invariant(
        name="leaders-write",
        description="A process of a component that elects a leader makes writes only in a term of its own: "
        "from its taking of the lease until the lease has run out, was released or was taken.",
        checks="writes, also refused ones, of processes whose component has a lease",
        exceptions={"frozen": "the process had been frozen, and had not seen yet that its term was over"},
    )
    kinds = frozenset({LEASE})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._leases: dict[str, _Lease] = {}
        self._of_component: dict[str, set[str]] = {}
        """The keys of the leases that processes of a component have held."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a write of a leader's lease; one that leaves its spec, as of labels, prolongs no term."""
        if revision.namespace == NAMESPACE or leaves_spec(revision):
            return
        lease = revision.after(LEASE)
        found = self._leases.setdefault(revision.key, _Lease())
        found.numbers.append(revision.revision)
        found.writes.append(revision)
        if lease is not None and lease.spec.holderIdentity:
            component = _component(_process(lease.spec.holderIdentity))
            self._of_component.setdefault(component, set()).add(revision.key)
        yield from ()

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Check a write."""
        keys = self._of_component.get(_component(answer.client))
        if keys is None or answer.kind in (LEASE, EVENT):
            return
        if answer.method not in WRITES:
            return
        self.checked += 1
        terms = [end for key in keys for end in self._ends(key, answer)]
        if not terms:
            yield self._violation(answer, "never had the lease")
        elif (late := answer.begin_time - max(terms)) > 0.0:
            if answer.was_frozen:
                self.allow("frozen")
            else:
                yield self._violation(answer, f"had not had the lease for {late:.2f} s")

    def _ends(self, key: str, answer: Answer) -> Iterator[float]:
        """Yield the end of the newest term of the process that a request was sent in, or after."""
        lease = self._leases[key]
        suffix = identity_end(answer)
        until = float("inf")
        for write in reversed(lease.writes[: bisect_right(lease.numbers, answer.begin)]):
            found = write.after(LEASE)
            if found is not None and found.spec.holderIdentity.endswith(suffix):
                yield min(until, write.time + found.spec.leaseDurationSeconds)
                return
            until = write.time

    def _violation(self, answer: Answer, problem: str) -> Violation:
        subject = subject_of(answer.kind, answer.namespace, answer.name)
        return self.violation(
            f"{answer.client} {problem} when it sent its {answer.method.value} of {subject}",
            objects=(subject,),
        )


def _process(identity: str) -> str:
    """Return the name of the process in an identity: host, name and pid."""
    _, _, name = identity.rpartition("_")[0].rpartition("_")
    return name


def _component(process: str) -> str:
    """Return the component of a process; the second one of two is `scheduler-1`."""
    name, _, number = process.rpartition("-")
    return name if name and number.isdigit() else process
