"""Every mutation is found within its budget, and the program itself passes what found it."""

from __future__ import annotations

import pytest

from tests.mutations.catalogue import MUTATIONS, Mutation
from tests.mutations.hunting import hunt
from tests.mutations.hunts import HUNTS

_every_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


def test_every_mutation_is_hunted() -> None:
    assert set(HUNTS) == {mutation.name for mutation in MUTATIONS}


@pytest.mark.chaos
@_every_mutation
def test_found_in_a_simulation(mutation: Mutation) -> None:
    assert hunt(mutation, simulate=True).problem == ""


@pytest.mark.slow
@_every_mutation
def test_found_on_real_processes(mutation: Mutation) -> None:
    assert hunt(mutation, simulate=False).problem == ""
