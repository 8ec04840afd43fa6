"""A lease of leader election is taken over only when it has run out."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.processes.leader_leases import LeaderLeases
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import coordination
from tests.lab.invariants.histories import History, answered_write, leader, node, result_of


def lease(holder: str, *, namespace: str = "kube-system") -> coordination.Lease:
    """Return a lease of 8 s."""
    found = leader(holder)
    found.metadata.namespace = namespace
    found.spec.leaseDurationSeconds = 8
    return found


def renewal(renewed: int, *, holder: str = "a", acquired: int = -5, duration: int = 8) -> coordination.Lease:
    """Return a lease that its holder has renewed, by its own clock."""
    found = lease(holder)
    found.spec.leaseDurationSeconds = duration
    found.spec.acquireTime.seconds, found.spec.renewTime.seconds = acquired, renewed
    return found


class Leases(History):
    """A history in which time passes with writes of a node."""

    def wait(self, seconds: int) -> Leases:
        """Let seconds pass."""
        self.put(*[node("n")] * seconds)
        return self

    def lease(self, *holders: str, namespace: str = "kube-system") -> Leases:
        """Write the lease for these holders, a second apart."""
        self.put(*(lease(holder, namespace=namespace) for holder in holders))
        return self

    def renew(self, renewed: int, **labels: str) -> Leases:
        """Write the lease of "a" with this renewTime."""
        made = renewal(renewed)
        made.metadata.labels.update(labels)
        self.put(made)
        return self


@pytest.mark.parametrize(
    ("history", "violations"),
    [
        (Leases().lease("a").wait(3).lease("b"), 1),
        (Leases().lease("a").wait(8).lease("b"), 0),
        (Leases().renew(0).wait(8).renew(8).wait(2).lease("b"), 1),
        (Leases().renew(0).wait(8).renew(0, touched="true").lease("b"), 0),
        (Leases().renew(0).wait(3).renew(0, touched="true").lease("b"), 1),
        (Leases().lease("a", "", "b"), 0),
        (History().put(lease("a")).delete(lease("a")).put(lease("b")), 0),
        (Leases().lease("a", "b", namespace="kube-node-lease"), 0),
    ],
    ids=[
        "too early",
        "run out",
        "after a renewal",
        "touched",
        "touched, too early",
        "released",
        "deleted",
        "of a node",
    ],
)
def test_takeovers(history: History, violations: int) -> None:
    found = result_of(LeaderLeases, history)
    assert len(found.violations) == violations


def test_the_violation_names_both_holders() -> None:
    (found,) = result_of(LeaderLeases, Leases().lease("a").wait(3).lease("b")).violations
    assert found.message.startswith("b took the lease")
    assert "after a had renewed it for 8 s" in found.message


def renewals(first: coordination.Lease, seconds: int, second: coordination.Lease) -> History:
    """Return a history with two writes of a lease, so many seconds apart."""
    history = Leases()
    history.put(first)
    history.wait(seconds - 1)
    return history.put(second)


@pytest.mark.parametrize(
    ("history", "violations"),
    [
        (renewals(renewal(0), 12, renewal(12)), 1),
        (renewals(renewal(0), 7, renewal(7)), 0),
        (renewals(renewal(0), 12, renewal(7)), 0),
        (renewals(renewal(0), 3, renewal(500)), 0),
        (renewals(renewal(0), 12, renewal(12, acquired=12)), 0),
        (renewals(renewal(0, duration=30), 12, renewal(12)), 0),
        (renewals(renewal(0, acquired=0), 12, renewal(12, acquired=0)), 0),
    ],
    ids=["late", "in time", "arrived late", "the clock jumped", "a new term", "a longer lease", "unanswered"],
)
def test_a_leader_does_not_outlast_its_lease(history: History, violations: int) -> None:
    found = result_of(LeaderLeases, history)
    assert len(found.violations) == violations
    for each in found.violations:
        assert each.message == (
            "a renewed the lease 12.0 s after it had renewed it for 8 s: it went on after its term"
        )
        assert each.objects == ("Lease kube-system/kube-scheduler",)


@pytest.mark.parametrize(
    ("kind", "client", "violations"),
    [
        (None, "", 0),
        (kinds.LEASE, "scheduler-0", 0),
        (kinds.POD, "scheduler-1", 0),
        (kinds.POD, "scheduler-0", 1),
    ],
    ids=["nothing", "its lease", "another process", "as a leader"],
)
def test_a_candidate_without_answers_may_renew_its_lease_late(
    kind: AnyKind | None, client: str, violations: int
) -> None:
    """Its acquisition and a renewal had no answer; then there was no API server for some time."""
    holder = "host_scheduler-0_101"
    history = Leases().put(renewal(0, holder=holder, acquired=0), renewal(2, holder=holder, acquired=0))
    for _ in range(12):
        history.put(node("n"))
    history.put(renewal(14, holder=holder, acquired=0))
    found = Check(ComponentSettings(observes_answers=True), [LeaderLeases.about.name])
    for revision in history.revisions:
        found.observe(revision)
        if kind is not None and revision.revision == 3:
            found.observe_answer(answered_write(client, 101, 3, 3.0, kind=kind))
    (result,) = found.finish(Evidence(now=history.now))
    assert len(result.violations) == violations
