"""The rules about the scheduler's queues, nominations and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.past.left_nodes import LeftNode
from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER, is_pending, waits_for_flush
from nominee.machinery.api.pb import core
from tests.lab.chaos.rest.clusters import Manifests, correct, pod, put, state

EXPLAIN = "/debug/explain?pod=other/p"


def at(second: int) -> str:
    return f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z"


ATTEMPT = {"lastAttemptStartTime": at(60), "since": at(70)}
"""An attempt that took ten seconds: what came in that time it has not seen."""


def queue(**entries: Any) -> dict[str, Any]:
    """Return a scheduler's queues: `unschedulable=["p"]`; `nominated` by node."""
    names = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")
    document: dict[str, Any] = {
        name: [{"pod": f"other/{each}"} for each in entries.get(name, ())] for name in names
    }
    nominated: Mapping[str, str] = entries.get("nominated", {})
    return {**document, "nominated": {node: [f"other/{each}"] for node, each in nominated.items()}}


def pending(**status: Any) -> Manifests:
    """Return the correct cluster with the pod other/p, which waits."""
    manifests = correct()
    manifests["p"] = pod("p", node="", namespace="other", labels={})
    manifests["p"]["status"].update(status)
    return manifests


def found(manifests: Manifests, queues: dict[str, Any], place: str = "", selected: Any = None) -> list[str]:
    """Return the findings; the scheduler explains the pod in the state `place` with the nodes `selected`."""
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): queues}
    if place:
        explanation = None if selected is None else {"selectedNodes": selected}
        debug[SCHEDULER, EXPLAIN] = {"state": place, "explanation": explanation}
    return [str(each) for each in findings(state(manifests, debug=debug))]


@pytest.mark.parametrize("place", ["Unschedulable", "Gated", "Active", "Scheduling"])
def test_a_pod_that_fits_and_waits_for_an_event_is_found(place: str) -> None:
    expected = f"pod other/p waits in the state {place}, and fits on n1, n2"
    assert found(pending(), queue(), place, ["n2", "n1"]) == [expected]


@pytest.mark.parametrize(
    ("place", "selected"),
    [
        ("Unschedulable", []),
        ("Unschedulable", None),
        ("Backoff", ["n1"]),
        ("WaitingOnPermit", ["n1"]),
        ("Binding", ["n1"]),
        ("OtherScheduler", ["n1"]),
    ],
)
def test_other_pods_may_wait(place: str, selected: list[str] | None) -> None:
    assert found(pending(), queue(), place, selected) == []


def test_a_pod_that_the_scheduler_does_not_know_is_found() -> None:
    assert found(pending(), queue(), "Unknown") == ["pod other/p is not known to the scheduler"]


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        (queue(unschedulable=["p"]), []),
        (queue(active=["gone"]), ["pod other/gone is in the scheduler's active queue, and is gone"]),
        (queue(gated=["gone"]), ["pod other/gone is in the scheduler's gated queue, and is gone"]),
        (queue(binding=["p"]), []),
        (queue(binding=["gone"]), ["pod other/gone is still being bound for the scheduler"]),
        (queue(nominated={"n1": "p"}), ["pod other/p is nominated to n1 for the scheduler alone"]),
    ],
)
def test_entries_of_the_queues_are_pods_that_wait(queues: dict[str, Any], expected: list[str]) -> None:
    assert found(pending(), queues) == expected


def test_a_pod_that_is_bound_is_not_being_bound() -> None:
    manifests = pending()
    put("p/spec/nodeName", "n1")(manifests)
    assert found(manifests, queue(binding=["p"])) == ["pod other/p is still being bound for the scheduler"]


def test_the_scheduler_respects_the_nominations_that_the_pods_have() -> None:
    manifests = pending(nominatedNodeName="n1")
    assert found(manifests, queue(unschedulable=["p"], nominated={"n1": "p"})) == []
    assert found(manifests, queue(unschedulable=["p"])) == [
        "pod other/p is nominated to n1, and not for the scheduler"
    ]
    assert found(manifests, queue(unschedulable=["p"], nominated={"n2": "p"})) == [
        "pod other/p is nominated to n2 for the scheduler alone"
    ]
    assert found(manifests, queue(gated=["p"])) == []


def test_gated_bound_and_grouped_pods_are_not_asked_about() -> None:
    asked = core.Pod()
    assert is_pending(asked)
    for change in ("nodeName", "schedulingGates", "schedulingGroup"):
        other = core.Pod()
        if change == "nodeName":
            other.spec.nodeName = "n1"
        elif change == "schedulingGates":
            other.spec.schedulingGates.add(name="example.com/wait")
        else:
            other.spec.schedulingGroup.podGroupName = "group"
        assert not is_pending(other)


@pytest.mark.parametrize(
    ("place", "explanation", "expected"),
    [
        ("Unschedulable", {"preemption": {"nominatedNode": "n1"}}, True),
        ("Unschedulable", {"selectedNodes": [], "preemption": {"nominatedNode": ""}}, False),
        ("Unschedulable", {"selectedNodes": ["n1"], "preemption": None}, False),
        ("Unschedulable", None, False),
        ("Gated", {"preemption": {"nominatedNode": "n1"}}, False),
    ],
)
def test_a_pod_that_may_preempt_waits_for_the_flush(place: str, explanation: Any, expected: bool) -> None:
    debug: dict[tuple[str, str], Any] = {
        (SCHEDULER, EXPLAIN): {"state": place, "explanation": explanation},
    }
    assert waits_for_flush(state(pending(), debug=debug)) is expected
    assert not waits_for_flush(state(pending()))


@pytest.mark.parametrize(
    ("place", "is_found"), [("Gated", True), ("Unschedulable", False), ("Backoff", False)]
)
def test_a_gated_pod_that_may_preempt_is_found(place: str, is_found: bool) -> None:
    explanation = {"selectedNodes": [], "preemption": {"nominatedNode": "n1"}}
    document = {"state": place, "rejectedBy": ["DefaultPreemption"], "explanation": explanation}
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): queue(), (SCHEDULER, EXPLAIN): document}
    expected = ["pod other/p waits in the state Gated, and may preempt on n1"] if is_found else []
    assert [str(each) for each in findings(state(pending(), debug=debug))] == expected


@pytest.mark.parametrize(
    ("left", "place", "fits"),
    [
        ([LeftNode("n1", 10, 60.0)], "Unschedulable", []),
        ([LeftNode("n1", 20, 61.0), LeftNode("n1", 0, 50.0)], "Unschedulable", []),
        ([], "Unschedulable", ["n1"]),
        ([LeftNode("n2", 10, 60.0)], "Unschedulable", ["n1"]),
        ([LeftNode("n1", 9, 60.0)], "Unschedulable", ["n1"]),
        ([LeftNode("n1", 10, 59.9)], "Unschedulable", ["n1"]),
        ([LeftNode("n1", 10, 60.0)], "Gated", ["n1"]),
    ],
    ids=["left", "by several", "none", "another node", "a lower pod", "before the attempt", "gated"],
)
def test_a_pod_behind_a_nomination_waits_for_the_flush(
    left: Sequence[LeftNode], place: str, fits: Sequence[str]
) -> None:
    manifests = pending()
    put("p/spec/priority", 10)(manifests)
    explanation = {"selectedNodes": ["n1"], "preemption": None}
    document = {"state": place, **ATTEMPT, "explanation": explanation}
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): queue(), (SCHEDULER, EXPLAIN): document}
    seen = replace(state(manifests, debug=debug), left_nodes=left)
    expected = [f"pod other/p waits in the state {place}, and fits on {node}" for node in fits]
    assert [str(each) for each in findings(seen)] == expected
    assert waits_for_flush(seen) is not bool(fits)


DEVICES: Any = {"devices": ["gpu.example.com/pool/gpu-0"]}


@pytest.mark.parametrize(
    ("room", "rejected_by", "place", "is_found"),
    [
        (DEVICES, ["DynamicResources"], "Unschedulable", False),
        (DEVICES, ["NodeResourcesFit", "DynamicResources"], "Unschedulable", False),
        (DEVICES, ["NodeResourcesFit"], "Unschedulable", True),
        (DEVICES, ["DynamicResources"], "Gated", True),
        ({"devices": []}, ["DynamicResources"], "Unschedulable", True),
        ({"volumes": {"pv": at(60)}}, ["NodeResourcesFit", "VolumeBinding"], "Unschedulable", False),
        ({"volumes": {"pv": at(59)}}, ["VolumeBinding"], "Unschedulable", True),
        ({"volumes": {"pv": at(60)}}, ["NodeResourcesFit"], "Unschedulable", True),
        ({"volumes": {"pv": at(60)}}, ["VolumeBinding"], "Gated", True),
        ({"volumes": {}}, ["VolumeBinding"], "Unschedulable", True),
        ({"nodes": {"n1": at(60)}}, ["NodeResourcesFit"], "Unschedulable", False),
        ({"nodes": {"n1": at(59)}}, ["NodeResourcesFit"], "Unschedulable", True),
        ({"nodes": {"n2": at(60)}}, ["NodeResourcesFit"], "Unschedulable", True),
        ({"nodes": {"n1": at(60)}}, ["NodeResourcesFit"], "Gated", True),
    ],
)
def test_a_pod_waits_for_the_flush_if_no_event_announced_room(
    room: Any, rejected_by: Sequence[str], place: str, is_found: bool
) -> None:
    explanation = {"selectedNodes": ["n1"], "preemption": None}
    document = {"state": place, **ATTEMPT, "rejectedBy": rejected_by, "explanation": explanation}
    queues = {**queue(), "unannounced": room}
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): queues, (SCHEDULER, EXPLAIN): document}
    seen = state(pending(), debug=debug)
    expected = [f"pod other/p waits in the state {place}, and fits on n1"] if is_found else []
    assert [str(each) for each in findings(seen)] == expected
    assert waits_for_flush(seen) is not is_found


@pytest.mark.parametrize(
    ("changes", "left", "waits"),
    [
        ({"schedulingGroup": {"podGroupName": "g"}}, [LeftNode("n1", 10, 60.0)], True),
        ({"schedulingGroup": {"podGroupName": "g"}}, [LeftNode("n1", 10, 59.9)], False),
        ({"schedulingGroup": {"podGroupName": "g"}}, [LeftNode("n1", 9, 60.0)], False),
        ({"nodeName": "n1"}, [LeftNode("n1", 10, 60.0)], True),
        ({"nodeName": "n1"}, [LeftNode("n2", 10, 60.0)], False),
        ({}, [LeftNode("n1", 10, 60.0)], False),
    ],
    ids=["group", "before the attempt", "a lower pod", "resize", "resize on another node", "alone"],
)
def test_a_group_and_a_resize_behind_a_nomination_wait_for_the_flush(
    changes: Mapping[str, Any], left: Sequence[LeftNode], waits: bool
) -> None:
    manifests = pending()
    for field, value in {"priority": 10, **changes}.items():
        put(f"p/spec/{field}", value)(manifests)
    entry = {"pod": "other/p", **ATTEMPT, "plugins": ["NodeResourcesFit"]}
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): {**queue(), "unschedulable": [entry]}}
    assert waits_for_flush(replace(state(manifests, debug=debug), left_nodes=left)) is waits


@pytest.mark.parametrize(
    ("room", "plugin", "waits"),
    [
        (DEVICES, "DynamicResources", True),
        (DEVICES, "NodeResourcesFit", False),
        ({"volumes": {"pv": at(60)}}, "VolumeBinding", True),
        ({"volumes": {"pv": at(60)}}, "NodeResourcesFit", False),
    ],
)
def test_a_group_waits_for_the_flush_if_no_event_announced_room(room: Any, plugin: str, waits: bool) -> None:
    manifests = pending()
    put("p/spec/schedulingGroup", {"podGroupName": "g"})(manifests)
    entry = {"pod": "other/p", **ATTEMPT, "plugins": [plugin]}
    queues = {**queue(), "unschedulable": [entry], "unannounced": room}
    assert waits_for_flush(state(manifests, debug={(SCHEDULER, QUEUE): queues})) is waits


@pytest.mark.parametrize(
    ("changes", "priority", "second", "waits"),
    [
        ({"schedulingGroup": {"podGroupName": "g"}}, 9, 60, True),
        ({"schedulingGroup": {"podGroupName": "g"}}, 9, 59, False),
        ({"schedulingGroup": {"podGroupName": "g"}}, 10, 60, False),
        ({"nodeName": "n1"}, 9, 60, True),
        ({"nodeName": "n2"}, 9, 60, False),
        ({}, 9, 60, False),
    ],
    ids=["group", "before the attempt", "not lower", "resize", "resize on another node", "alone"],
)
def test_a_group_and_a_resize_may_preempt_a_pod_that_came_later(
    changes: Mapping[str, Any], priority: int, second: int, waits: bool
) -> None:
    manifests = pending()
    for field, value in {"priority": 10, **changes}.items():
        put(f"p/spec/{field}", value)(manifests)
    victim = pod("victim", namespace="other", labels={})
    victim["spec"]["priority"] = priority
    victim["status"]["conditions"][0]["lastTransitionTime"] = at(second)
    manifests["victim"] = victim
    entry = {"pod": "other/p", **ATTEMPT, "plugins": ["NodeResourcesFit"]}
    debug: dict[tuple[str, str], Any] = {(SCHEDULER, QUEUE): {**queue(), "unschedulable": [entry]}}
    assert waits_for_flush(state(manifests, debug=debug)) is waits
