"""Generations that a component may still read."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.generations import drop_read


@pytest.mark.parametrize(("observed", "kept"), [(0, [1, 2, 3]), (2, [2, 3]), (3, [3]), (7, [3])])
def test_what_was_read_is_dropped_but_for_the_newest(observed: int, kept: list[int]) -> None:
    versions = dict.fromkeys((1, 2, 3), "")
    drop_read(versions, observed)
    assert list(versions) == kept
    drop_read({}, observed)
