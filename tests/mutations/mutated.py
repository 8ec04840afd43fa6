"""Apply a mutation as a plugin of pytest: `NOMINEE_MUTATION=NAME pytest -p tests.mutations.mutated TEST`."""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.mutations.patch import Edit, apply
from tests.mutations.unseen.table import UNSEEN_BY_NAME

VARIABLE: Final = "NOMINEE_MUTATION"


def edits_of(name: str) -> tuple[Edit, ...]:
    """Return the edits of an unseen mutation, none for "".

    Raises:
        KeyError: there is no such mutation.
    """
    return UNSEEN_BY_NAME[name].mutation.edits if name else ()


def pytest_configure(config: pytest.Config) -> None:
    for edit in edits_of(os.environ.get(VARIABLE, "")):
        apply(edit)
