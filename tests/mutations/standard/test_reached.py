"""Which mutations are reached by the unmutated program: a mark at the statement that each changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.mutations.catalogue import Mutation
from tests.mutations.launch import BY_NAME
from tests.mutations.patch import Edit, find_function
from tests.mutations.standard import reached
from tests.mutations.standard.commands import Command
from tests.mutations.standard.job import Task
from tests.mutations.standard.results import UNMUTATED, Result, Results
from tests.mutations.standard.schedule import pending
from tests.mutations.standard.table import Chosen, lines

_HERE: Final = "tests.mutations.standard.test_reached"


def _sign(number: int) -> str:
    if number > 0:
        sign = "+"
    elif number < 0:
        sign = "-"
    else:
        sign = ""
    return sign


def _mutation(name: str, old: str, new: str) -> Mutation:
    return Mutation(name=name, title="", module="m", edits=(Edit(f"{_HERE}:_sign", old, new),))


def test_a_mutation_is_reached_where_it_makes_a_difference() -> None:
    reached.watch(
        [
            _mutation("value", 'sign = "-"', 'sign = "~"'),
            _mutation("same value", 'sign = "+"', 'sign = "+" * 1'),
            _mutation("condition", "number > 0", "number >= 0"),
            _mutation("statement", 'sign = ""', "raise ValueError"),
        ]
    )
    assert _sign(2) == "+"
    assert reached.take() == []
    assert _sign(-2) == "-"
    assert reached.take() == ["value"]
    assert _sign(0) == ""
    assert reached.take() == ["condition", "statement"]


def test_every_mutation_can_be_marked() -> None:
    edits = [edit for mutation in BY_NAME.values() for edit in mutation.edits]
    former = {(function := find_function(edit.target)): function.__code__ for edit in edits}
    try:
        reached.watch(BY_NAME.values())
        assert all(function.__code__ is not code for function, code in former.items())
    finally:
        for function, code in former.items():
            function.__code__ = code


@pytest.mark.parametrize(
    ("words", "cases", "want"),
    [
        ((), ["f s ", "f s a"], ()),
        ((), ["f s a", "f s b"], ("f s a", "f s b")),
        ((), ["f s a", "f s b", "f s c", "f s d", "f s e"], ("f s a", "f s b", "f s c", "f s d")),
        ((), ["*"], ()),
        (("--outcomes", "replay"), ["f s a", "f t a", "f t "], ("f t ", "f s ")),
        (("--outcomes", "replay"), ["*"], ()),
    ],
)
def test_only_the_cases_that_reach_a_mutation_are_run_with_it(
    tmp_path: Path, words: tuple[str, ...], cases: list[str], want: tuple[str, ...]
) -> None:
    command = Command(label="c", words=("c", "--simulate", *words), seconds=1.0)
    results = Results(tmp_path / "r.jsonl", "")
    assert [name for name, _ in pending(["m", "n"], [command], results)] == ["m", "n"]
    ran = Result(mutation=UNMUTATED, label="c", words=command.words, commit="", reached={"m": cases})
    results.add(ran)
    assert list(pending(["m", "n"], [command], results)) == [("m", [Task(command, want)])]
    assert Results(tmp_path / "r.jsonl", "").of(UNMUTATED) == [ran]
    rows = list(lines(Chosen(known=["m", "n"], unseen={}), results))
    assert "| not run |" in rows[3]
    assert "| not reached |" in rows[4]
