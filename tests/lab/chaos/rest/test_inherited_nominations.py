"""The nominations that may have been meant for a former pod of the name, found in the history."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.past.inherited_nominations import inherited_nominations
from tests.lab.invariants.histories import History, pod

FORMER = pod("a")
HEIR, OTHER = pod("a", uid="uid-2"), pod("b")
NOMINATED, ELSEWHERE = (pod("a", uid="uid-2", nominated=node) for node in ("n1", "n2"))
LATER = [OTHER] * 16
"""Writes of one second each."""


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (History().put(FORMER).delete(FORMER).put(HEIR, NOMINATED), {"uid-2"}),
        (History().put(FORMER).delete(FORMER).put(HEIR, NOMINATED, HEIR), set()),
        (History().put(FORMER).delete(FORMER).put(HEIR, NOMINATED, ELSEWHERE), {"uid-2"}),
        (History().put(FORMER).delete(FORMER).put(HEIR, *LATER, NOMINATED), set()),
        (History().put(OTHER).delete(OTHER).put(HEIR, NOMINATED), set()),
        (History().put(HEIR, NOMINATED), set()),
    ],
    ids=["inherited", "cleared", "another node", "late", "another name", "no former pod"],
)
def test_a_pod_inherits_a_nomination(history: History, expected: set[str]) -> None:
    assert inherited_nominations(history.revisions) == expected
