"""The state directory of a start that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.localcluster.new_directory import missing_directories, removed_on_failure


def refuse(directory: Path, *files: str) -> None:
    """Make files as a start does, and fail."""
    made = missing_directories(directory)
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).touch()
    with pytest.raises(KeyboardInterrupt), removed_on_failure(made):
        raise KeyboardInterrupt


STARTED = ("run/supervisor.lock", "pki/ca.crt", "up.json")


def test_a_new_directory_is_removed_with_those_above_it(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    refuse(tmp_path / "old" / "a" / "b", *STARTED)
    assert list((tmp_path / "old").iterdir()) == []


def test_a_directory_that_existed_stays(tmp_path: Path) -> None:
    refuse(tmp_path, *STARTED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pki", "run", "up.json"]


def test_a_new_directory_with_something_else_stays(tmp_path: Path) -> None:
    refuse(tmp_path / "a", *STARTED, "notes.txt")
    assert (tmp_path / "a" / "notes.txt").exists()
    assert (tmp_path / "a" / "run").exists()


def test_of_the_directories_above_one_with_something_else_stays(tmp_path: Path) -> None:
    refuse(tmp_path / "a" / "b" / "c", "run/supervisor.lock", "../../notes.txt")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["notes.txt"]


def test_a_start_that_succeeds_keeps_its_directory(tmp_path: Path) -> None:
    made = missing_directories(tmp_path / "a")
    (tmp_path / "a" / "run").mkdir(parents=True)
    with removed_on_failure(made):
        pass
    assert (tmp_path / "a" / "run").exists()
