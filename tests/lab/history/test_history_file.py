"""A history file has what was observed, whenever its writer was killed."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.fold import Fold
from nominee.lab.history.history_file import HistoryFileError, HistoryReader, HistoryWriter, recover
from nominee.lab.history.revision import Revision
from tests.lab.invariants.histories import History, pod

Summary = list[tuple[int, str, bytes | None, bytes | None, float, bool]]


def _summary(revisions: Iterable[Revision]) -> Summary:
    return [
        (
            each.revision,
            each.key,
            None if each.value is None else each.value.data,
            None if each.previous_value is None else each.previous_value.data,
            each.time,
            each.is_state,
        )
        for each in revisions
    ]


def _data(revision: Revision) -> bytes:
    assert revision.value is not None
    return revision.value.data


def _written(path: Path, history: History, coverage: Coverage | None = None) -> Summary:
    """Write a history, each revision in a member of its own."""
    writer = HistoryWriter(path, coverage or Coverage())
    for revision in history.revisions:
        writer.append([revision])
        writer.flush()
    writer.close()
    return _summary(history.revisions)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    history = History().put(pod("a"), pod("b"), pod("a", node="n1")).delete(pod("b"))
    written = _written(tmp_path / "history.gz", history)
    reader = HistoryReader(tmp_path / "history.gz")
    assert _summary(reader) == written
    assert reader.coverage == Coverage(begin=0, end=4)
    assert reader.whole_bytes == (tmp_path / "history.gz").stat().st_size
    assert gzip.decompress((tmp_path / "history.gz").read_bytes()).startswith(b"nominee-history-1\n")


def test_begin_and_gaps_are_kept(tmp_path: Path) -> None:
    coverage = Coverage()
    writer = HistoryWriter(tmp_path / "history.gz", coverage)
    history = History().state(pod("a")).put(pod("b"))
    coverage.begin = 1
    writer.append(history.revisions)
    coverage.gaps.append((3, 40))
    history.next_revision = 40
    history.state(pod("a", node="n1")).put(pod("c"))
    writer.append(history.revisions[2:])
    writer.close()
    reader = HistoryReader(tmp_path / "history.gz")
    assert _summary(reader) == _summary(history.revisions)
    assert reader.coverage == Coverage(begin=1, end=41, gaps=[(3, 40)])


def test_a_killed_writer_loses_its_last_member_only(tmp_path: Path) -> None:
    path = tmp_path / "history.gz"
    written = _written(path, History().put(pod("a"), pod("b"), pod("c")))
    whole = path.read_bytes()
    sizes = set()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        reader = HistoryReader(path)
        found = _summary(reader)
        assert found == written[: len(found)]
        assert reader.whole_bytes + reader.rest_bytes == size
        assert (reader.missing_rest == "") is (reader.rest_bytes == 0)
        sizes.add(len(found))
    assert sizes == {0, 1, 2}


def test_what_follows_damage_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "history.gz"
    written = _written(path, History().put(pod("a"), pod("b"), pod("c")))
    whole = path.read_bytes()
    at = len(whole) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    reader = HistoryReader(path)
    found = _summary(reader)
    assert found == written[: len(found)]
    assert 0 < len(found) < len(written)
    assert reader.whole_bytes + reader.rest_bytes == len(whole)
    assert f"ends after {reader.whole_bytes} bytes with an incomplete part" in reader.missing_rest


@pytest.mark.parametrize("record", [b"W", b"W" + bytes(23) + b"\x01" + bytes(4) + b"\xff"])
def test_records_that_cannot_be_read_are_an_error(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "history.gz"
    path.write_bytes(gzip.compress(b"nominee-history-1\n" + record))
    with pytest.raises(HistoryFileError, match="has no valid record after revision 0"):
        list(HistoryReader(path))


def test_it_is_continued_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "history.gz"
    history = History().put(pod("a"), pod("b"))
    _written(path, history)
    path.write_bytes(path.read_bytes()[:-3])
    before = recover(path)
    assert before.fold.revision == 1
    writer = HistoryWriter(path, before.coverage)
    again = before.fold.change(history.revisions[1].key, _data(history.revisions[1]), 2, 7.0)
    writer.append([again])
    writer.close()
    reader = HistoryReader(path)
    assert [(each.revision, each.name, each.time) for each in reader][1:] == [(2, "b", 7.0)]
    assert reader.coverage == Coverage(begin=0, end=2)


def test_a_full_file_ends_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "history.gz"
    writer = HistoryWriter(path, Coverage(), bytes_max=300)
    fold = Fold()
    for number in range(1, 50):
        writer.append([fold.change(f"/registry/{number}", bytes([number]) * 50, number, 0.0)])
        writer.flush()
    writer.close()
    assert writer.is_full
    assert path.stat().st_size < 600
    reader = HistoryReader(path)
    revisions = [each.revision for each in reader]
    assert revisions == list(range(1, len(revisions) + 1))
    assert 0 < len(revisions) < 49
    assert reader.is_full


# Without a time: the workers of a parallel run must find tests of the same names.
@pytest.mark.parametrize("content", [b"something else", gzip.compress(b"something else", mtime=0)])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history.gz").write_bytes(content)
    with pytest.raises(HistoryFileError, match=r"history\.gz is no history of Nominee"):
        list(HistoryReader(tmp_path / "history.gz"))
