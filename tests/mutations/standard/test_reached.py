"""Which mutations are reached by the unmutated program: a mark at the statement that each changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.standard import reached
from tests.mutations.standard.commands import Command
from tests.mutations.standard.results import UNMUTATED, Result, Results
from tests.mutations.standard.schedule import pending

_HERE: Final = "tests.mutations.standard.test_reached"


def _sign(number: int) -> str:
    if number > 0:
        sign = "+"
    elif number < 0:
        sign = "-"
    else:
        sign = ""
    return sign


def _mutation(name: str, old: str) -> Mutation:
    return Mutation(name=name, title="", module="m", edits=(Edit(f"{_HERE}:_sign", old, "pass"),))


def test_only_a_statement_that_is_executed_is_reached() -> None:
    reached.watch(
        [_mutation("plus", 'sign = "+"'), _mutation("minus", "elif number"), _mutation("def", "def")]
    )
    assert _sign(2) == "+"
    assert reached.take() == ["def", "plus"]
    assert (_sign(-2), _sign(0)) == ("-", "")
    assert reached.take() == ["def", "minus"]
    assert reached.take() == []


def test_a_command_that_does_not_reach_a_mutation_is_not_run_with_it(tmp_path: Path) -> None:
    command = Command(label="c", words=("c", "--simulate"), seconds=1.0)
    results = Results(tmp_path / "r.jsonl", "")
    assert list(pending(["a", "b"], [command], results)) == [("a", [command]), ("b", [command])]
    ran = Result(mutation=UNMUTATED, label="c", words=command.words, commit="", reached=("a",))
    results.add(ran)
    assert list(pending(["a", "b"], [command], results)) == [("a", [command])]
    assert Results(tmp_path / "r.jsonl", "").of(UNMUTATED) == [ran]
