"""States of zones and the rates at which their nodes are tainted, as tables."""

from __future__ import annotations

import pytest

from nominee.controllers.nodes.zones import EXCLUDED, Change, Rates, TaintQueue, Zones, ZoneState
from tests.controllers.builders import node

RATES = Rates()
NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL


@pytest.mark.parametrize(
    ("unready", "ready", "state", "rate"),
    [
        (0, 0, NORMAL, 0.1),
        (0, 1, NORMAL, 0.1),
        (1, 0, FULL, 0.1),
        (60, 0, FULL, 0.1),
        (2, 1, NORMAL, 0.1),
        (3, 1, PARTIAL, 0.0),
        (3, 2, PARTIAL, 0.0),
        (3, 3, NORMAL, 0.1),
        (11, 9, PARTIAL, 0.0),
        (10, 9, NORMAL, 0.1),
        (49, 1, PARTIAL, 0.0),
        (50, 1, PARTIAL, 0.01),
    ],
)
def test_the_state_and_the_rate_of_a_zone(unready: int, ready: int, state: ZoneState, rate: float) -> None:
    assert RATES.state_of([False] * unready + [True] * ready) is state
    assert RATES.of(state, unready + ready) == rate


def test_a_queue_gives_a_node_each_ten_seconds() -> None:
    queue = TaintQueue(0.1, 0.0)
    for name in ("b", "a", "b"):
        queue.add(name)
    assert [queue.take(0.0), queue.take(0.0), queue.take(9.0)] == ["b", None, None]
    assert queue.seconds_left(9.0) == pytest.approx(1.0)
    queue.add("b")
    assert [queue.take(10.0), queue.take(20.0)] == ["a", None], "b was taken, and not removed"
    assert queue.seconds_left(20.0) is None
    queue.remove("b")
    queue.add("b")
    assert queue.take(20.0) == "b"


def test_a_node_that_could_not_be_tainted_comes_last_unless_it_was_removed() -> None:
    queue = TaintQueue(1.0, 0.0)
    for name in ("a", "b"):
        queue.add(name)
    assert queue.take(0.0) == "a"
    queue.retry("a")
    assert [queue.take(1.0), queue.take(2.0)] == ["b", "a"]
    queue.remove("a")
    queue.retry("a")
    assert queue.take(9.0) is None


def test_a_queue_that_is_stopped_begins_with_a_wait() -> None:
    queue = TaintQueue(0.1, 0.0)
    queue.add("a")
    queue.set_rate(0.0, 5.0)
    assert queue.take(99.0) is None
    assert queue.seconds_left(99.0) is None
    queue.set_rate(0.1, 100.0)
    assert [queue.take(109.0), queue.take(110.0)] == [None, "a"]


def test_a_queue_with_a_token_keeps_it_at_another_rate() -> None:
    queue = TaintQueue(0.1, 0.0)
    queue.add("a")
    queue.set_rate(0.01, 5.0)
    assert queue.take(5.0) == "a"


def judge(zones: Zones, ready: dict[str, list[bool]], now: float) -> Change:
    """Judge a pass over nodes of these zones."""
    nodes = [
        (node(f"{zone}-{number}", labels={"topology.kubernetes.io/zone": zone}), each)
        for zone, rows in ready.items()
        for number, each in enumerate(rows)
    ]
    zones.begin([each for each, _ in nodes], now)
    for each, is_ready in nodes:
        zones.count(each, is_ready)
    return zones.judge(now)


def test_a_cluster_stops_and_resumes_as_a_whole() -> None:
    zones = Zones(RATES)
    assert judge(zones, {"a": [True], "b": [False]}, 0.0) is Change.NONE
    assert judge(zones, {"a": [False], "b": [False]}, 5.0) is Change.STOPPED
    assert judge(zones, {"a": [False], "b": [False]}, 10.0) is Change.NONE
    queue = zones.queue_of(("", "b"))
    assert queue is not None
    queue.add("b-0")
    assert queue.take(15.0) is None
    assert judge(zones, {"a": [True], "b": [False]}, 20.0) is Change.RESUMED
    assert [queue.take(29.0), queue.take(30.0)] == [None, "b-0"], "a zone without a ready node, among others"
    assert judge(zones, {"a": [True], "b": [False]}, 30.0) is Change.NONE


def test_nodes_that_are_excluded_are_no_sign_of_a_disruption() -> None:
    zones = Zones(RATES)
    alone = node(labels={EXCLUDED: ""})
    for now in (0.0, 5.0):
        zones.begin([alone], now)
        zones.count(alone, False)
        assert zones.judge(now) is Change.NONE
        queue = zones.queue_of(("", ""))
        assert queue is not None
        queue.add("n1")
        assert queue.take(now) == "n1", "a zone of which no node counts gets a new queue with each pass"


def test_a_zone_without_nodes_has_no_queue() -> None:
    zones = Zones(RATES)
    judge(zones, {"a": [True], "b": [True]}, 0.0)
    judge(zones, {"a": [True]}, 5.0)
    assert zones.queue_of(("", "b")) is None
