"""Event handlers make the calls that the real scheduler's make (tests/golden/events.jsonl)."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.object_changes import node_changes, pod_changes
from tests.scheduler.builders import pod
from tests.support.recordings import read

CASES = read("events.jsonl")
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


def in_words(event: ClusterEvent) -> dict[str, Any]:
    return {"resource": event.resource.value, "action": [ActionType(event.action).name]}


def name_of(obj: Any) -> str | None:
    return None if obj is None else str(obj.metadata.name)


def priority_limit(only: Callable[[PodInfo], bool]) -> int:
    """The highest priority that passes; every lower one does, and no higher one."""

    def passes(priority: int) -> bool:
        return only(PodInfo(core.Pod(spec=core.PodSpec(priority=priority))))

    limit = LOWEST + bisect.bisect_left(range(LOWEST, HIGHEST + 1), True, key=lambda p: not passes(p)) - 1
    near = [p for p in (*range(limit - 20, limit + 21), LOWEST, 0, HIGHEST) if LOWEST <= p <= HIGHEST]
    assert [p for p in near if passes(p)] == [p for p in near if p <= limit], "not a limit on priority"
    return limit


class RecordingQueue:
    """Notes the calls in the recording's words."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def add(self, pod: PodInfo, now: float) -> None:
        self.calls.append({"call": "Add", "pod": pod.name})

    def update(self, old: core.Pod, new: PodInfo, now: float) -> None:
        self.calls.append({"call": "Update", "pod": new.name})

    def delete(self, pod: core.Pod) -> None:
        self.calls.append({"call": "Delete", "pod": pod.metadata.name})

    def move_all(
        self,
        event: ClusterEvent,
        old: Message | None,
        new: Message | None,
        now: float,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        call: dict[str, Any] = {
            "call": "MoveAll",
            "event": in_words(event),
            "new": name_of(new),
            "old": name_of(old),
        }
        if only is not None:
            call["onlyPodsWithPriorityAtMost"] = priority_limit(only)
        self.calls.append(call)


def decoded(kind: str, data: dict[str, Any] | None) -> Any:
    return None if data is None else codec.from_json(core.Pod if kind == "Pod" else core.Node, data)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_calls_on_the_queue(case: dict[str, Any]) -> None:
    queue, cache = RecordingQueue(), Cache()
    handlers = EventHandlers(queue, cache, is_ours=lambda name: name == "default-scheduler")
    old, new = decoded(case["kind"], case["old"]), decoded(case["kind"], case["new"])
    stale = case.get("oldIsTombstone", False)
    if case["kind"] == "Pod":
        if old is None:
            handlers.pod_added(new, 0.0)
        elif new is None:
            handlers.pod_deleted(old, stale, 0.0)
        else:
            handlers.pod_updated(old, new, 0.0)
    elif old is None:
        handlers.node_added(new, 0.0)
    elif new is None:
        cache.put_node(old)
        handlers.node_deleted(old, stale, 0.0)
    else:
        handlers.node_updated(old, new, 0.0)
    assert queue.calls == case["queueCalls"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_events_of_an_update(case: dict[str, Any]) -> None:
    if not (case["old"] and case["new"]):  # additions and deletions yield none
        assert not case.get("events")
        return
    old, new = decoded(case["kind"], case["old"]), decoded(case["kind"], case["new"])
    changes = pod_changes(old, new) if case["kind"] == "Pod" else node_changes(old, new)
    assert [in_words(event) for event in changes] == case["events"]


@pytest.mark.parametrize(
    ("assumed", "nominated", "stale", "expected"),
    [
        ("n1", "", True, {"n1": 7.0}),
        ("n1", "", False, {}),
        ("n1", "n1", True, {}),  # the hints of plugins know the node
        ("", "", True, {}),
    ],
    ids=["by a list", "by the watch", "nominated", "not assumed"],
)
def test_an_end_that_a_list_shows_may_announce_no_node(
    assumed: str, nominated: str, stale: bool, expected: dict[str, float]
) -> None:
    cache = Cache()
    handlers = EventHandlers(RecordingQueue(), cache, is_ours=lambda name: True)
    node = core.Node()
    node.metadata.name = "n1"
    handlers.node_added(node, 0.0)
    pod = core.Pod()
    pod.metadata.uid = "a"
    pod.status.nominatedNodeName = nominated
    if assumed:
        cache.assume_pod(PodInfo(pod), assumed)
    handlers.pod_deleted(pod, stale, 7.0)
    assert handlers.unannounced_nodes == expected
    handlers.node_deleted(node, stale, 8.0)
    assert not handlers.unannounced_nodes


def test_pods_that_wait_for_a_new_one_of_their_gang_stay_ahead_of_it() -> None:
    queue = RecordingQueue()
    handlers = EventHandlers(queue, Cache(), is_ours=lambda name: True, gangs=True)
    handlers.pod_added(pod("last", schedulingGroup={"podGroupName": "g"}).pod, 0.0)
    assert [call["call"] for call in queue.calls] == ["MoveAll", "Add"]
