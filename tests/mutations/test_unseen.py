"""The table of the unseen mutations: every edit applies, and every proof is a test that exists."""

from __future__ import annotations

from typing import get_args

import pytest

from nominee.commands.cluster.up import up
from nominee.localcluster.components import COMPONENTS
from tests.mutations.catalogue import BY_NAME
from tests.mutations.launch import SELF, SUPERVISOR, edits
from tests.mutations.mutated import edits_of
from tests.mutations.patch import applied
from tests.mutations.reach import ROOT, problem_of, unmutated_problem
from tests.mutations.unseen.table import UNSEEN, UNSEEN_BY_NAME
from tests.mutations.unseen.unseen import Component, Unseen

LEAST = 40


def test_the_table_covers_all_components_and_half_of_it_needs_a_disturbance() -> None:
    assert len(UNSEEN) >= LEAST
    assert 2 * sum(unseen.disturbed for unseen in UNSEEN) >= len(UNSEEN)
    assert {unseen.component for unseen in UNSEEN} == set(get_args(Component))


def test_no_two_mutations_have_one_name() -> None:
    assert len(UNSEEN_BY_NAME) == len(UNSEEN)
    assert not UNSEEN_BY_NAME.keys() & BY_NAME.keys()


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda unseen: unseen.mutation.name)
def test_the_edits_apply_to_the_product_as_it_is(unseen: Unseen) -> None:
    undo = applied(edits_of(unseen.mutation.name))
    undo()


def test_the_programs_of_the_mutations_are_those_that_a_cluster_starts() -> None:
    started = {each.module for each in COMPONENTS} | {SUPERVISOR}
    assert {unseen.mutation.module for unseen in UNSEEN} <= started


def test_the_supervisor_gets_its_mutation_from_the_command_that_starts_it() -> None:
    mutation = UNSEEN_BY_NAME["left-down-after-three-crashes"].mutation
    undo = applied(edits(mutation, "nominee.cli"))
    try:
        callback = up.callback
        assert callback is not None
        texts = [text for text in callback.__code__.co_consts if isinstance(text, str)]
        assert {SELF, mutation.name, SUPERVISOR} <= set(texts)
    finally:
        undo()


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda unseen: unseen.mutation.name)
def test_the_proof_is_a_test_that_exists(unseen: Unseen) -> None:
    path, _, test = unseen.proof.partition("::")
    assert test.count("[") == test.count("]"), "a part of an id"
    assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text()


@pytest.mark.parametrize(
    ("status", "problem"),
    [(0, "passes with it"), (1, ""), (4, "cannot be run (pytest ended with 4)")],
)
def test_a_proof_must_fail_with_its_mutation(status: int, problem: str) -> None:
    unseen = UNSEEN[0]
    found = problem_of(unseen, lambda proofs, mutation: status)
    assert found.endswith(problem)
    assert bool(found) is bool(problem)


def test_proofs_must_pass_without_a_mutation() -> None:
    asked = list[tuple[list[str], str]]()

    def run(proofs: object, mutation: str) -> int:
        asked.append((list(proofs), mutation))  # type: ignore[call-overload]  # a sequence of node ids
        return 1

    assert unmutated_problem(UNSEEN[:2], run)
    assert asked == [(sorted(unseen.proof for unseen in UNSEEN[:2]), "")]
