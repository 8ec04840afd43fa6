"""The branches that a run takes, and the cases that are selected by them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nominee.lab.chaos.outcomes import selection
from nominee.lab.chaos.outcomes.selection import Selection

MODULE = '''
"""A module."""

async def choose(first, second):
    """Compare two numbers, and wait for nothing."""
    match first:
        case 7:
            return "seven"
    if first < second and first:
        return "less"
    elif second or (other := first) == 5:
        return "second"
    return [each for each in (first, second) if each] or other

def fails():
    try:
        raise ValueError
    except ValueError:
        return "failed"
'''
PROGRAM = """
import asyncio, sys
from nominee.lab.chaos.outcomes import branches
branches.watch()
import nominee.scheduler
nominee.scheduler.__path__.append(sys.argv[1])
import nominee.scheduler.marked as marked
for arguments in ((1, 2), (2, 2), (3, 2), (0, 2), (5, 0), (6, 0), (7, 0)):
    branches.clear()
    result = asyncio.run(marked.choose(*arguments))
    print(result, branches.collect(), sep=';')
branches.clear()
print(marked.fails(), branches.collect(), sep=';')
branches.clear()
print("nothing", branches.collect(), sep=";")
"""


def test_each_way_through_a_module_takes_branches_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "marked.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    root = Path(__file__).resolve().parents[3]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    results, taken = zip(*(line.split(";") for line in ran.stdout.splitlines()), strict=True)
    assert results == ("less", "second", "second", "second", "second", "[6]", "seven", "failed", "nothing")
    assert len(set(taken)) == len(taken)
    assert taken[-1] == "[]"


def test_cases_of_rare_branches_are_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "CASES_MAX", 2)
    chosen = Selection().choose([1], {"a": [1, 2], "b": [1, 2, 3, 4], "c": [2, 3], "d": [5, 6, 7, 8, 9]})
    assert chosen == ["d", "b"]


def test_a_branch_that_enough_runs_take_is_worth_nothing() -> None:
    selected = Selection()
    for number in range(selection.RUNS):
        assert selected.choose([1], {f"{number}": [2, 3, 4]}) == [f"{number}"]
    assert selected.choose([1], {"again": [1, 2, 3, 4]}) == []
    assert selected.choose([1], {"other": [4, 5, 6, 7]}) == ["other"]
