"""What keeps a board up to date: values of other programs, and processes that do not answer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import pytest

from nominee.dashboard import processes
from nominee.dashboard.board import Board
from nominee.dashboard.following import BUSY_FACTOR, POLL_SECONDS, STATES_SECONDS_MAX, ClusterFollower
from nominee.lab.history.fold import Fold
from nominee.lab.history.object_history import Selection, Target, entries
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.marks import Mark
from nominee.lab.timeline.reading import LogMarks, Reader
from nominee.machinery.api.kinds import POD
from nominee.machinery.runtime.clock import FakeClock

LOG = "I0101 00:00:00.000001 scheduler] Ready http=127.0.0.1:1\n"


def follower(directory: Path) -> ClusterFollower:
    board = Board(TimeLine("x", "live"), directory)
    return ClusterFollower(board, Reader(board.timeline, directory), LogMarks(directory), FakeClock())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The processes that were asked for what only they know."""
    found: list[str] = []
    monkeypatch.setattr(processes, "running", lambda *_: [])
    monkeypatch.setattr(processes, "queues", lambda _, name, __: found.append(name))
    monkeypatch.setattr(processes, "autoscaler", lambda _, name, __: found.append(name))
    return found


@pytest.mark.parametrize("kind", ["pods/default", "events/default", "leases/kube-system"])
@pytest.mark.parametrize("time", [None, 1.0])
def test_a_value_that_cannot_be_decoded_does_not_end_the_dashboard(
    kind: str, time: float | None, tmp_path: Path
) -> None:
    fold, found = Fold(), follower(tmp_path)
    key = f"/registry/{kind}/x"
    written = [fold.change(key, b"garbage", 1, time), fold.change(key, None, 2, time)]
    for revision in written:
        found._observe(revision)
    assert found.board.timeline.count == 2
    assert entries([written[0]], Selection([Target(POD, "default", "a")])) == []


async def test_processes_that_do_not_answer_are_not_waited_for(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(name: str, component: str, health: str) -> dict[str, Any]:
        return {"name": name, "component": component, "health": health, "leader": None}

    states = [
        state("scheduler", "scheduler", ""),
        state("cloud", "cloud", "ok"),
        state("autoscaler", "autoscaler", "ok"),
    ]
    monkeypatch.setattr(processes, "running", lambda *_: states)
    await follower(tmp_path).refresh()
    assert asked == ["autoscaler"]


async def test_states_are_asked_for_more_often_than_long_queues(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, states = follower(tmp_path), []
    clock = found.clock
    assert isinstance(clock, FakeClock)

    def running(*_: object) -> list[dict[str, Any]]:
        states.append(1)
        clock._now += 0.5
        return [{"name": "scheduler", "component": "scheduler", "health": "ok", "leader": None}]

    def queues(_: Path, name: str, __: float) -> None:
        asked.append(name)
        clock._now += 1.0

    monkeypatch.setattr(processes, "running", running)
    monkeypatch.setattr(processes, "queues", queues)
    for _ in range(5):
        await found.refresh()
        await clock.advance(STATES_SECONDS_MAX)
    assert (len(states), len(asked)) == (5, 1)


async def test_processes_of_a_busy_cluster_are_asked_less_often(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, states = follower(tmp_path), []
    clock = found.clock
    assert isinstance(clock, FakeClock)
    monkeypatch.setattr(processes, "running", lambda *_: states.append(1))
    observer = Mock(is_busy=True)
    monkeypatch.setattr(found, "_observer", observer)
    for _ in range(4 * BUSY_FACTOR):
        await found.refresh()
        await clock.advance(POLL_SECONDS)
    assert len(states) == 4
    observer.is_busy = False
    await found.refresh()
    await clock.advance(POLL_SECONDS)
    await found.refresh()
    assert len(states) == 6


async def test_one_refresh_runs_at_a_time_and_one_that_is_cancelled_keeps_its_marks(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on, reads = threading.Event(), threading.Event(), []

    def read(_: LogMarks, __: int) -> list[Mark]:
        reads.append(1)
        began.set()
        goes_on.wait(30)
        return [Mark(1.0, "step", "a")]

    monkeypatch.setattr(LogMarks, "read", read)
    found = follower(tmp_path)
    clock = found.clock
    assert isinstance(clock, FakeClock)
    async with anyio.create_task_group() as group:
        group.start_soon(found.refresh)
        await anyio.to_thread.run_sync(began.wait, 30)
        await clock.advance(10 * POLL_SECONDS)
        await found.refresh()
        assert len(reads) == 1
        group.cancel_scope.cancel()
        goes_on.set()
    assert [mark.text for mark in found.board.marks] == ["a"]
    await clock.advance(POLL_SECONDS)
    await found.refresh()
    assert len(reads) == 2


def test_a_log_that_is_removed_meanwhile_has_no_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_text(LOG)
    monkeypatch.setattr(
        "nominee.lab.timeline.reading.process_logs.log_files",
        lambda _: [tmp_path / "a.log", tmp_path / "gone.log"],
    )
    assert [mark.kind for mark in LogMarks(tmp_path).read(2026)] == ["start"]
