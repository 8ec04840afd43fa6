"""The changes of a board as events: at the pace of the page, in bounded batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.dashboard import events
from nominee.dashboard.board import Board
from nominee.dashboard.events import Follower, stream
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.marks import Mark
from tests.lab.invariants.histories import History, event, pod


def board(history: History, *, bytes_max: int = 1 << 20) -> Board:
    found = Board(TimeLine("x", "live", bytes_max=bytes_max), Path())
    for revision in history.revisions:
        found.timeline.add(revision)
    return found


def taken(follower: Follower) -> list[tuple[str, object]]:
    """The events by name, without those of parts."""
    found = []
    for text in follower.changes():
        fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
        if fields["event"] not in ("components", "queues", "autoscaler"):
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def names(found: list[tuple[str, object]]) -> list[list[str]]:
    return [
        [each["n"] for each in data] for name, data in found if name == "revisions" and isinstance(data, list)
    ]


def test_a_page_gets_what_came_after_its_document() -> None:
    history = History().put(pod("a"), pod("b"))
    found = board(history)
    follower = Follower.after(found, 1)
    assert names(taken(follower)) == [["b"]]
    assert taken(follower) == []
    for revision in history.put(event("e", "X", pod("a")), pod("c")).revisions[2:]:
        found.timeline.add(revision)
    assert names(taken(follower)) == [["c"]]


def test_many_revisions_come_in_batches_of_which_each_has_its_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BATCH_MAX", 2)
    follower = Follower.after(board(History().put(pod("a"), pod("b"), pod("c"))), 0)
    texts = [text for text in follower.changes() if text.startswith("event: revisions")]
    assert [text.splitlines()[1] for text in texts] == ["id: 2", "id: 3"]


@pytest.mark.parametrize("reason", ["left out", "behind", "gap"])
def test_a_page_that_is_too_far_behind_loads_the_document_again(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History().put(pod("a"), pod("b"), pod("c"))
    found = board(history)
    follower = Follower.after(found, 0)
    if reason == "left out":
        found.timeline.bytes_max = 1
        found.timeline.add(history.put(pod("d")).revisions[-1])
    elif reason == "behind":
        monkeypatch.setattr(events, "LAG_MAX", 2)
    else:
        found.resets += 1
    assert taken(follower) == [("reset", {})]


def test_parts_come_at_first_and_when_they_differ() -> None:
    found = board(History())
    follower = Follower.after(found, 0)
    found.set_part("queues", {"active": []})
    assert 'event: queues\ndata: {"active":[]}\n\n' in list(follower.changes())
    found.set_part("queues", {"active": []})
    assert list(follower.changes()) == []


def test_the_newest_marks_come_again() -> None:
    found = board(History())
    found.add_marks([Mark(float(time), "step", str(time)) for time in range(30)])
    follower = Follower.after(found, 0)
    ((name, first),) = taken(follower)
    assert name == "marks"
    assert isinstance(first, list)
    assert [mark["text"] for mark in first] == [str(time) for time in range(10, 30)]
    found.add_marks([Mark(30.0, "crash", "last")])
    assert taken(follower) == [("marks", [{"t": 30.0, "kind": "crash", "text": "last", "object": None}])]


async def test_a_page_that_does_not_read_keeps_nothing_but_its_place() -> None:
    history = History().put(pod("a"))
    found = board(history)
    slow = stream(Follower.after(found, 1))
    assert await anext(slow) == "retry: 1000\n\n"
    assert found.clients == 1
    for number in range(50):
        found.timeline.add(history.put(pod(f"p{number}")).revisions[-1])
        found.notify()
    texts = [await anext(slow)]
    assert texts[0].startswith("event: revisions\nid: 51\n")
    await slow.aclose()  # type: ignore[attr-defined]  # an async generator
    assert found.clients == 0
