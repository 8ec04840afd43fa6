"""The nominations that were taken back, found in the history."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.past.cleared_nominations import cleared_nominations
from tests.lab.invariants.histories import History, pod

NOMINATED, WAITS = pod("a", nominated="n1"), pod("a")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (History().put(NOMINATED, WAITS), {"uid-a"}),
        (History().put(NOMINATED, WAITS, pod("a", node="n2")), {"uid-a"}),
        (History().put(NOMINATED, pod("a", nominated="n2")), set()),
        (History().put(NOMINATED, pod("a", node="n1")), set()),
        (History().put(NOMINATED).delete(NOMINATED), set()),
        (History().state(NOMINATED).state(WAITS), set()),
    ],
    ids=["cleared", "bound since", "another node", "bound", "deleted", "before"],
)
def test_a_pod_has_lost_its_nomination(history: History, expected: set[str]) -> None:
    assert cleared_nominations(history.revisions) == expected
