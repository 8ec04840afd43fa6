"""The last write that may have made room, found in the history."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.lab.chaos.rest.past.changes_of_room import last_changes_of_room, last_for
from nominee.machinery.api.pb import core, devices, workloads
from tests.lab.invariants.histories import History, lease, node, pod


def _node(**allocatable: str) -> core.Node:
    found = node("n1")
    for name, quantity in allocatable.items():
        found.status.allocatable[name].string = quantity
    return found


def _claim() -> devices.ResourceClaim:
    found = devices.ResourceClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "gpu", "default", "uid-gpu"
    return found


def _group(count: int, reason: str = "") -> workloads.PodGroup:
    found = workloads.PodGroup()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "gang", "default", "uid-gang"
    found.spec.schedulingPolicy.gang.minCount = count
    if reason:
        found.status.conditions.add(type="PodGroupScheduled", status="False", reason=reason)
    return found


def _failed_attempt() -> core.Pod:
    return pod("a", conditions={"PodScheduled": "Unschedulable"})


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (pod("a"), pod("a", node="n1"), True),
        (pod("a", nominated="n1"), pod("a"), True),
        (pod("a", node="n1"), pod("a", node="n1", phase="Succeeded"), True),
        (pod("a"), _failed_attempt(), False),
        (_node(cpu="1"), _node(cpu="2"), True),
        (_node(cpu="1"), _node(cpu="1"), False),
        (lease("n1"), lease("n1"), False),
        (_claim(), _claim(), True),
        (_group(3), _group(2), True),
        (_group(2), _group(2, "Unschedulable"), False),
    ],
    ids=[
        *("bound", "not nominated", "ended", "status", "larger", "heartbeat", "lease", "claim"),
        *("fewer", "status of a group"),
    ],
)
def test_a_write_may_make_room(before: Message, after: Message, counts: bool) -> None:
    history = History().put(pod("z"), before).wait(5).put(after)
    times = [each.time for each in history.revisions]
    is_last = last_changes_of_room(history.revisions) == {None: times[-1]}
    assert is_last is counts


def test_the_end_of_a_pod_makes_room() -> None:
    history = History().put(pod("a", node="n1")).wait(5).delete(pod("a", node="n1"))
    assert last_changes_of_room(history.revisions) == {None: history.revisions[-1].time}
    assert last_for(pod("a"), {}) == float("-inf")


def _member(name: str, group: str, *, nominated: str = "", bound: str = "") -> core.Pod:
    found = pod(name, nominated=nominated, node=bound)
    if group:
        found.spec.schedulingGroup.podGroupName = group
    return found


@pytest.mark.parametrize(
    ("group", "bound", "counts"),
    [("gang", "", False), ("other", "", True), ("", "", True), ("gang", "n1", True)],
    ids=["own", "another group", "no group", "bound"],
)
def test_an_attempt_at_a_group_takes_back_nominations_of_its_own(
    group: str, bound: str, counts: bool
) -> None:
    before, after = _member("a", group, nominated="n1"), _member("a", group, bound=bound)
    history = History().put(before).wait(5).put(after)
    first, last = (each.time for each in history.revisions)
    found = last_for(_member("b", "gang"), last_changes_of_room(history.revisions))
    assert found == (last if counts else first)
