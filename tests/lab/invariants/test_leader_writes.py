"""Processes write in terms of their own."""

from __future__ import annotations

from dataclasses import replace

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.processes.leader_writes import LeaderWrites
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import coordination
from tests.lab.invariants.histories import BEGIN, History, answered_write, leader

# The writes are one second apart, from BEGIN + 1 on.
FIRST, SECOND = "host_scheduler-0_101", "host_scheduler-1_102"


def _lease(holder: str, renewed: int = 0) -> coordination.Lease:
    found = leader(holder)
    found.spec.leaseDurationSeconds = 4
    found.spec.renewTime.seconds = renewed
    return found


def _problems(history: History, *answers: Answer) -> list[str]:
    check = Check(ComponentSettings(observes_answers=True), [LeaderWrites.about.name])
    for revision in history.revisions:
        check.observe(revision)
    for answer in answers:
        check.observe_answer(answer)
    (result,) = check.finish(Evidence(now=history.now))
    return [violation.message for violation in result.violations]


def test_a_leader_writes_in_its_term() -> None:
    history = History().put(_lease(FIRST), _lease(FIRST, 1), _lease(SECOND))
    times = [history.revisions[index].time - BEGIN for index in range(3)]
    assert _problems(history, answered_write("scheduler-0", 101, 2, times[1] + 4)) == []
    assert _problems(history, answered_write("scheduler-1", 102, 3, times[2])) == []
    frozen = replace(answered_write("scheduler-0", 101, 3, times[2] + 2), was_frozen=True)
    assert _problems(history, frozen) == []


def test_a_leader_whose_lease_was_taken_does_not_write() -> None:
    history = History().put(_lease(FIRST), _lease(SECOND))
    taken = history.revisions[1].time - BEGIN
    assert _problems(history, answered_write("scheduler-0", 101, 2, taken + 3)) == [
        "scheduler-0 had not had the lease for 3.00 s when it sent its patch of Pod default/p"
    ]


def test_a_leader_does_not_outlast_its_lease() -> None:
    history = History().put(_lease(FIRST))
    written = history.revisions[0].time - BEGIN
    assert _problems(history, answered_write("scheduler-0", 101, 1, written + 8)) == [
        "scheduler-0 had not had the lease for 4.00 s when it sent its patch of Pod default/p"
    ]


def test_a_write_that_is_no_renewal_does_not_prolong_the_term() -> None:
    touched = _lease(FIRST)
    touched.metadata.labels["touched"] = "true"
    history = History().put(_lease(FIRST), touched)
    written = history.revisions[0].time - BEGIN
    assert _problems(history, answered_write("scheduler-0", 101, 2, written + 5)) == [
        "scheduler-0 had not had the lease for 1.00 s when it sent its patch of Pod default/p"
    ]


def test_a_process_that_does_not_lead_makes_no_writes_but_events_and_leases() -> None:
    history = History().put(_lease(FIRST))
    problem = "{} never had the lease when it sent its patch of Pod default/p"
    assert _problems(history, answered_write("scheduler-1", 102, 1, 1)) == [problem.format("scheduler-1")]
    # A process that was started again has the name, and not the term, of the one before.
    assert _problems(history, answered_write("scheduler-0", 103, 1, 1)) == [problem.format("scheduler-0")]
    assert _problems(history, answered_write("scheduler-1", 102, 1, 1, kind=kinds.EVENT)) == []
    assert _problems(history, answered_write("scheduler-1", 102, 1, 1, kind=kinds.LEASE)) == []


def test_components_without_a_lease_are_not_checked() -> None:
    assert _problems(History().put(_lease(FIRST)), answered_write("kubelet-0", 104, 1, 1)) == []
