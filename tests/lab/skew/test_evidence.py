"""What the page shows of a cell's history file."""

from __future__ import annotations

from pathlib import Path

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.lab.skew.cells.evidence import read
from tests.lab.invariants.histories import History, pod


def _written(folder: Path) -> bytes:
    """Write a history of two pods, each in a member of its own; return the file."""
    writer = HistoryWriter(folder / NAME, Coverage())
    for revision in History().put(pod("a"), pod("b")).revisions:
        writer.append([revision])
        writer.flush()
    writer.close()
    return (folder / NAME).read_bytes()


def test_a_history_that_was_cut_is_shown_as_cut(tmp_path: Path) -> None:
    whole = _written(tmp_path)
    lines = ["1 Pod default/a created", "2 Pod default/b created"]
    assert read(tmp_path)["history"] == lines
    (tmp_path / NAME).write_bytes(whole[:-1])
    first, last = read(tmp_path)["history"]
    assert first == lines[0]
    assert last.startswith("the history file ends after")
    assert last.endswith("it was cut off, or damaged there")


def test_a_file_that_is_no_history_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"text")
    assert read(tmp_path)["history"] == [f"{tmp_path / NAME} is no history of Nominee"]


def test_a_cell_without_a_history_file(tmp_path: Path) -> None:
    assert read(tmp_path)["history"] == []
