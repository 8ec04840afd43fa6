"""The nodes that nominated pods left, found in the history."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nominee.lab.chaos.rest.past.left_nodes import left_nodes
from tests.lab.invariants.histories import History, pod


@pytest.mark.parametrize(
    ("nominations", "bound", "left"),
    [
        (["n1"], "n2", ["n1"]),
        (["n1"], "n1", []),
        ([""], "n2", []),
        (["n1", "n2"], "n2", ["n1"]),
        (["n1", "n3"], "n2", ["n1", "n3"]),
        (["n1", ""], "n2", []),
        (["n1", "n2"], "", []),
    ],
    ids=["elsewhere", "there", "nowhere", "nominated again", "twice", "cleared before", "waits still"],
)
def test_a_pod_leaves_the_nodes_that_it_did_not_get(
    nominations: Sequence[str], bound: str, left: Sequence[str]
) -> None:
    history = History()
    for node in ["", *nominations]:
        history.put(pod("p", priority=7, nominated=node))
    history.put(pod("p", priority=7, node=bound))
    seen = list(left_nodes(history.revisions))
    assert [(each.node, each.priority) for each in seen] == [(node, 7) for node in left]
    assert {each.time for each in seen} <= {history.revisions[-1].time}


def test_another_pod_of_the_name_was_not_nominated() -> None:
    pods = pod("p", uid="1", nominated="n1"), pod("p", uid="2", node="n2")
    assert list(left_nodes(History().put(*pods).revisions)) == []
