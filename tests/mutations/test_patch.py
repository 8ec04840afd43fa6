"""Every mutation finds its target, and a patch that does not fails loudly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutations import patch
from tests.mutations.catalogue import MUTATIONS, Mutation
from tests.mutations.launch import ROOT, edits
from tests.mutations.patch import Edit, PatchError, applied
from tests.support.patience import PATIENCE_SECONDS

_DIRECTORY = Path("/nonexistent")


def answer() -> str:
    """Return a text, for the tests below."""
    return "right"


class Asked:
    async def answer(self) -> str:
        return "right"

    name = "no function"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_its_functions_and_can_be_taken_back(mutation: Mutation) -> None:
    functions = [patch.find_function(edit.target) for edit in mutation.edits]
    before = [function.__code__ for function in functions]
    undo = applied(mutation.edits)
    try:
        assert all(f.__code__ is not code for f, code in zip(functions, before, strict=True))
    finally:
        undo()
    assert [function.__code__ for function in functions] == before


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_programs_that_start_processes_pass_the_mutation_on(mutation: Mutation) -> None:
    undo = applied(edits(mutation, "nominee.cli"))
    try:
        from nominee.localcluster.components import COMPONENTS
        from nominee.localcluster.plan import UpOptions, build

        options = UpOptions(directory=_DIRECTORY, components=tuple(each.name for each in COMPONENTS))
        modules = {each.name: each.module for each in COMPONENTS}
        argv = {modules[each.component]: each.argv for each in build(options).spec.processes}
        mutated = {name for name, words in argv.items() if "tests.mutations.launch" in words}
        assert mutated == {mutation.module}
        words = argv[mutation.module]
        assert words[1:7] == ("-P", "-m", "tests.mutations.launch", mutation.name, "--", mutation.module)
    finally:
        undo()


def test_there_are_at_least_twelve_with_names_of_their_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 12


def test_callers_that_imported_a_function_by_name_get_the_patch() -> None:
    imported = answer
    undo = applied((Edit(f"{__name__}:answer", '"right"', '"wrong"'),))
    assert imported() == "wrong"
    undo()
    assert imported() == "right"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit(f"{__name__}:answer", "is not there", "x"), "0 times"),
        (Edit(f"{__name__}:Asked.answer", "r", "x"), "expected once"),
        (Edit(f"{__name__}:Asked.other", "right", "x"), "other"),
        (Edit(f"{__name__}:Asked.name", "right", "x"), "no function"),
        (Edit("tests.mutations.gone:f", "right", "x"), "gone"),
        (Edit(f"{__name__}:answer", '"right"', "("), "answer"),
    ],
)
def test_a_patch_without_its_target_fails(edit: Edit, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        patch.apply(edit)


def test_the_launcher_refuses_a_program_that_cannot_have_the_bug() -> None:
    command = [sys.executable, "-m", "tests.mutations.launch", MUTATIONS[0].name, "--", "nominee.machinery"]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert ran.returncode == 1
    assert "would have no effect" in ran.stderr
