"""The document of a time line: revisions with rows, the state before them, and marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.process_logs import lines_of
from nominee.lab.history.writers import Writer
from nominee.lab.timeline.document import TimeLine, timeline
from nominee.lab.timeline.marks import Mark, of_lines, of_revision, of_violations
from nominee.lab.timeline.reading import LogMarks, Reader
from nominee.machinery.api.pb import coordination, core
from tests.lab.invariants.histories import BEGIN, History, event, lease, node, pod


def _read(found: TimeLine, **more: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(found.text(**more))
    return document


def test_revisions_have_rows_and_a_deletion_has_none() -> None:
    history = History().put(node("n1"), pod("a"), pod("a", node="n1")).delete(pod("a"))
    writer = Writer(user="system:kube-scheduler", verb="create pods/binding", client="kube-scheduler")
    document = _read(timeline("x", "file", history.revisions, {3: writer}))
    assert (document["apiVersion"], document["kind"]) == ("dashboard.nominee.dev/v1", "TimeLine")
    assert [(each["r"], each["k"], each["ns"], each["n"]) for each in document["revisions"]] == [
        (1, "Node", "", "n1"),
        (2, "Pod", "default", "a"),
        (3, "Pod", "default", "a"),
        (4, "Pod", "default", "a"),
    ]
    assert document["revisions"][2]["row"]["node"] == "n1"
    assert document["revisions"][2]["w"] == "create pods/binding by system:kube-scheduler (kube-scheduler)"
    assert document["revisions"][3]["row"] is None
    assert document["coverage"]["end"] == 4
    assert (document["begin"], document["end"]) == (BEGIN + 1, BEGIN + 4)


def test_heartbeats_and_events_are_left_out() -> None:
    leader = coordination.Lease()
    leader.metadata.name, leader.metadata.namespace = "kube-scheduler", "kube-system"
    leader.spec.holderIdentity = "a"
    renewed, taken = coordination.Lease(), coordination.Lease()
    renewed.CopyFrom(leader)
    renewed.spec.renewTime.seconds = 7
    taken.CopyFrom(renewed)
    taken.spec.holderIdentity = "b"
    history = History().put(lease("n1"), event("e", "Scheduled", pod("a")), leader, renewed, taken)
    document = _read(timeline("x", "file", history.revisions))
    assert [(each["r"], each["row"]["rows"]["holder"]) for each in document["revisions"]] == [
        (3, "a"),
        (5, "b"),
    ]


def test_above_the_limit_the_oldest_revisions_become_the_state_before() -> None:
    history = History().state(node("n1")).put(pod("a"), pod("b"), pod("a", node="n1"))
    history = history.delete(pod("b")).put(pod("c"))
    found = TimeLine("x", "live", bytes_max=1)
    for revision in history.revisions:
        found.add(revision)
    document = _read(found)
    assert [(each["n"], each["r"], each.get("state")) for each in document["revisions"]] == [
        ("n1", 1, True),
        ("a", 4, True),
        ("c", 6, None),
    ]
    assert document["revisions"][1]["row"]["node"] == "n1"
    assert document["coverage"]["left_out"] == 5
    assert [item.number for item in found.after(found.count - 1) or ()] == [6]
    assert found.after(found.count - 2) is None


def test_items_behind_a_revision_are_found_by_number() -> None:
    found = timeline("x", "live", History().put(pod("a"), event("e", "X", pod("a")), pod("b")).revisions)
    assert [found.number_of(revision) for revision in (0, 1, 2, 3, 9)] == [0, 1, 2, 3, 3]
    assert [item.revision.revision for item in found.after(found.number_of(1)) or ()] == [2, 3]
    assert found.after(3) == []


def test_a_value_that_cannot_be_decoded_has_an_empty_row() -> None:
    history = History()
    history.revisions.append(history.fold.change("/registry/pods/default/x", b"k8s\0garbage", 1, BEGIN))
    assert _read(timeline("x", "file", history.revisions))["revisions"][0]["row"] == {}


def test_marks_of_logs() -> None:
    lines = lines_of(
        [
            "I1114 22:13:20.000000 scheduler] Ready http=127.0.0.1:1",
            'I1114 22:13:21.000000 scheduler] Failpoint set name=scheduler.bind.before action="crash"',
            "W1114 22:13:22.000000 scheduler] Failpoint name=scheduler.bind.before action=crash",
            'I1114 22:13:22.500000 supervisor] Process state=backoff name=scheduler exit="signal 9"',
            "I1114 22:13:22.600000 supervisor] Process state=ready name=scheduler",
            "I1114 22:13:22.650000 supervisor] Process state=killed name=scheduler",
            "I1114 22:13:22.700000 supervisor] Process state=paused name=scheduler",
            "I1114 22:13:24.000000 scheduler] Ready http=127.0.0.1:2",
            "I1114 22:13:25.000000 scheduler] Attempted pod=default/a",
        ],
        2023,
    )
    marks = list(of_lines(lines, set()))
    assert [mark.kind for mark in marks] == [
        "start",
        "failpoint",
        "crash",
        "crash",
        "kill",
        "fault",
        "restart",
    ]
    assert [marks[3].text, marks[4].text] == ["scheduler: died (signal 9)", "scheduler: killed"]
    assert marks[0] == Mark(BEGIN, "start", "scheduler: ready")


def test_the_mark_of_a_preemption_is_that_of_its_first_event() -> None:
    first = event("e", "Preempted", pod("victim"), note="Preempted by pod x on node n1")
    again = event("e", "Preempted", pod("victim"), note="Preempted by pod x on node n1", count=2)
    revisions = History().put(first, again, event("f", "Scheduled", pod("a")), core.Node()).revisions
    assert [of_revision(each) for each in revisions] == [
        Mark(
            BEGIN + 1,
            "preemption",
            "Pod default/victim: Preempted by pod x on node n1",
            "Pod default/victim",
        ),
        None,
        None,
        None,
    ]


def test_the_mark_of_a_violation_is_at_its_last_revision() -> None:
    violation = Violation(
        invariant="one-node", message="two nodes", revisions=(1, 3), objects=("Pod default/a",)
    )
    (mark,) = of_violations([violation], {1: 10.0, 3: 30.0})
    assert mark == Mark(30.0, "violation", "one-node: two nodes", "Pod default/a")
    document = _read(timeline("x", "file", History().put(pod("a")).revisions), marks=[mark])
    assert document["marks"] == [
        {"t": 30.0, "kind": "violation", "text": "one-node: two nodes", "object": "Pod default/a"}
    ]


def test_a_history_file_is_read_with_its_writers_marks_and_broken_invariants(tmp_path: Path) -> None:
    both = pod("a", node="n2", uid="u")
    history = History().put(node("n1"), node("n2"), pod("a", node="n1", uid="u"), both)
    writer = HistoryWriter(tmp_path / NAME, Coverage())
    writer.append(history.revisions)
    writer.close()
    log = tmp_path / "apiserver.log"
    log.write_text(
        "I1114 22:13:20.000000 apiserver] Ready http=127.0.0.1:1\n"
        "D1114 22:13:23.000000 apiserver] Wrote verb=create resource=pods revision=3 user=u\n"
    )
    logs, reader = LogMarks(tmp_path), Reader(TimeLine("x", "file"), tmp_path, ComponentSettings())
    reader.read_file(tmp_path / NAME)
    document = _read(reader.timeline, marks=[*reader.marks, *logs.read(2023)])
    assert document["revisions"][2]["w"] == "create pods by u (no user agent)"
    kinds = [(each["kind"], each["object"]) for each in document["marks"]]
    assert kinds[0] == ("start", None)
    assert ("violation", "Pod default/a") in kinds
    with log.open("a") as file:
        file.write("I1114 22:13:25.000000 apiserver] Ready http=")
        file.flush()
        assert logs.read(2023) == []
        file.write("127.0.0.1:2\n")
    assert [mark.kind for mark in logs.read(2023)] == ["restart"]
    log.write_text("I1114 22:13:26.000000 apiserver] Ready http=127.0.0.1:3\n")
    assert [mark.time for mark in logs.read(2023)] == [BEGIN + 6]
