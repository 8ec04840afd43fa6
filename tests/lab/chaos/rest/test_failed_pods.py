"""The pods that failed, found in the history."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.past.failed_pods import failed_pods
from tests.lab.invariants.histories import History, pod

RUNS, FAILED = pod("a", node="n1"), pod("a", node="n1", phase="Failed")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (History().put(RUNS, FAILED), {"uid-a"}),
        (History().put(RUNS, FAILED).delete(FAILED), {"uid-a"}),
        (History().put(RUNS).delete(RUNS), set()),
        (History().put(RUNS, pod("a", node="n1", phase="Succeeded")), set()),
        (History().state(FAILED).put(FAILED).delete(FAILED), set()),
    ],
    ids=["failed", "deleted since", "deleted", "succeeded", "failed before"],
)
def test_a_pod_has_failed_also_if_it_is_gone(history: History, expected: set[str]) -> None:
    assert failed_pods(history.revisions) == expected
