"""The last write that may have made room, found in the history."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.lab.chaos.rest.past.changes_of_room import last_changes_of_room, last_for
from nominee.machinery.api.pb import core, devices, storage, workloads
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


def _volume() -> core.PersistentVolume:
    found = core.PersistentVolume()
    found.metadata.name, found.metadata.uid = "disk", "uid-disk"
    return found


def _csi_node() -> storage.CSINode:
    found = storage.CSINode()
    found.metadata.name, found.metadata.uid = "n1", "uid-csi-n1"
    return found


def _refused(name: str = "a", *, nominated: str = "") -> core.Pod:
    found = pod(name, nominated=nominated, conditions={"PodScheduled": "Unschedulable"})
    found.status.conditions[0].status = "False"
    return found


def _member(name: str = "a", *, node: str = "", cpu: str = "") -> core.Pod:
    found = pod(name, node=node, cpu=cpu)
    found.spec.schedulingGroup.podGroupName = "gang"
    return found


def _labelled(found: core.Pod) -> core.Pod:
    found.metadata.labels["app"] = "web"
    return found


def _cordoned() -> core.Node:
    found = _node(cpu="1")
    found.spec.unschedulable = True
    return found


def _declaring(*features: str) -> core.Node:
    found = node("n1")
    found.status.declaredFeatures.extend(features)
    return found


def _asking(what: str = "") -> core.Pod:
    """Return a pod of a group that waits, and that asks for something beside the room of a node."""
    found = _member("waits", cpu="2")
    match what:
        case "spread":
            found.spec.topologySpreadConstraints.add(topologyKey="zone")
        case "affinity":
            found.spec.affinity.podAffinity.SetInParent()
        case "claim":
            found.spec.resourceClaims.add(name="gpu")
        case "extended":
            found.spec.containers[0].resources.requests["example.com/gpu"].string = "1"
        case "volume":
            source = found.spec.volumes.add(name="data").volumeSource
            source.persistentVolumeClaim.claimName = "data"
    return found


def _counts(history: History, *waiting: core.Pod) -> bool:
    """Return whether the last write of a history may have made room."""
    times = [each.time for each in history.revisions]
    return max(last_changes_of_room(history.revisions, waiting).values(), default=0.0) == times[-1]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pod("a"), pod("a", node="n1"), False),
        (_member(), _member(node="n1"), True),
        (pod("a", nominated="n1"), pod("a"), True),
        (pod("a", nominated="n1"), pod("a", node="n1"), False),
        (pod("a", nominated="n1"), pod("a", node="n2"), True),
        (pod("a"), pod("a", nominated="n1"), False),
        (pod("a", node="n1"), pod("a", node="n1", phase="Succeeded"), True),
        (pod("a"), _refused(), False),
        (pod("a"), _labelled(pod("a")), False),
        (_member(), _labelled(_member()), False),
        (pod("a", node="n1"), _labelled(pod("a", node="n1")), False),
        (pod("a", node="n1", cpu="1"), pod("a", node="n1", cpu="2"), False),
        (pod("a", node="n1", cpu="2"), pod("a", node="n1", cpu="1"), True),
        (pod("a", node="n1", cpu="1", allocated="2"), pod("a", node="n1", cpu="1", allocated="1"), True),
        (_node(cpu="1"), _node(cpu="2"), True),
        (_node(cpu="2"), _node(cpu="1"), False),
        (_node(cpu="1"), _node(cpu="1"), False),
        (_node(cpu="1"), _cordoned(), False),
        (_cordoned(), _node(cpu="1"), True),
        (node("n1"), node("n1", taints=["busy"]), False),
        (node("n1", taints=["busy"]), node("n1"), True),
        (node("n1"), _declaring("A"), True),
        (_declaring("A"), _declaring("B"), True),
        (_declaring("A", "B"), _declaring("A"), False),
        (lease("n1"), lease("n1"), False),
        (_claim(), _claim(), False),
        (_group(3), _group(2), True),
        (_group(2), _group(2, "Unschedulable"), False),
    ],
    ids=[
        *("bound", "member", "not nominated", "bound as nominated", "bound elsewhere", "nominated", "ended"),
        *("status", "labels of another", "labels of a member", "labels", "grown", "shrunk", "shrunk at last"),
        *("larger", "smaller", "heartbeat", "cordoned", "uncordoned", "tainted", "untainted"),
        *("declares a feature", "declares another feature", "declares less", "lease"),
        *("claim", "fewer", "status of a group"),
    ],
)
def test_a_write_may_make_room(before: Message, after: Message, expected: bool) -> None:
    assert _counts(History().put(pod("z", node="n1"), before).wait(5).put(after), _asking()) is expected


@pytest.mark.parametrize(
    ("what", "before", "after"),
    [
        ("spread", pod("a"), pod("a", node="n1")),
        ("affinity", pod("a", node="n1"), _labelled(pod("a", node="n1"))),
        ("claim", _claim(), _claim()),
        ("extended", _claim(), _claim()),
        ("volume", _volume(), _volume()),
        ("volume", _csi_node(), _csi_node()),
    ],
)
def test_a_pod_of_a_group_may_need_more_than_room(what: str, before: Message, after: Message) -> None:
    history = History().put(before).wait(5).put(after)
    assert _counts(history, _asking(what))
    assert not _counts(history, _asking())


@pytest.mark.parametrize(("rejector", "expected"), [("InterPodAffinity", True), ("NodeResourcesFit", False)])
def test_the_labels_of_a_member_count_for_plugins_that_look_at_them(rejector: str, expected: bool) -> None:
    history = History().put(_member()).wait(1).put(_labelled(_member()))
    times = last_changes_of_room(history.revisions, [_member()], [rejector])
    assert (times[None] == history.revisions[-1].time) is expected


def test_what_comes_takes_room() -> None:
    """A node and a member of a group are what others wait for."""
    assert not _counts(History().put(node("n1")).put(pod("a")), _asking("spread"))
    assert not _counts(History().put(node("n1")).put(pod("a", node="n1")), _asking())
    assert _counts(History().put(node("n1")).put(pod("a", node="n1")), _asking("spread"))
    assert _counts(History().put(node("n1")).put(_member()), _asking())
    assert _counts(History().put(node("n1")).put(node("n2")), _asking())


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (pod("a", node="n1"), True),
        (_refused(), False),
        (_refused(nominated="n1"), True),
        (pod("a"), True),  # it may be assumed on a node
        (node("n2"), False),
    ],
    ids=["bound", "waiting", "nominated", "untried", "node"],
)
def test_the_end_of_a_pod_makes_room(gone: Message, expected: bool) -> None:
    history = History().put(node("n1"), gone).wait(5).delete(gone)
    assert _counts(history, _asking()) is expected
    assert last_for(_asking(), last_changes_of_room([], [_asking()])) == float("-inf")


def test_the_end_of_a_node_changes_the_spread_of_pods() -> None:
    assert _counts(History().put(node("n1")).wait(5).delete(node("n1")), _asking("spread"))


@pytest.mark.parametrize(
    ("group", "bound", "counts"),
    [("gang", "", False), ("other", "", True), ("", "", True), ("gang", "n1", True)],
    ids=["own", "another group", "no group", "bound"],
)
def test_an_attempt_at_a_group_takes_back_nominations_of_its_own(
    group: str, bound: str, counts: bool
) -> None:
    before, after = pod("a", nominated="n1"), pod("a", node=bound)
    for each in (before, after):
        if group:
            each.spec.schedulingGroup.podGroupName = group
    history = History().put(_group(2), before).wait(5).put(after)
    last = history.revisions[-1].time
    found = last_for(_member("b"), last_changes_of_room(history.revisions, [_member("b")]))
    assert (found == last) is counts
