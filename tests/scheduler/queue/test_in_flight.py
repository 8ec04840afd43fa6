"""Events are kept for pods in flight, and no longer."""

from __future__ import annotations

import pytest

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.queue import in_flight
from nominee.scheduler.queue.in_flight import InFlight
from tests.scheduler.builders import pod

ADD = ClusterEvent(EventResource.Node, ActionType.Add)
LABEL = ClusterEvent(EventResource.Node, ActionType.UpdateNodeLabel)


def words(flight: InFlight) -> list[str]:
    return [entry.name if hasattr(entry, "name") else str(entry) for entry in flight.log()]


def record(flight: InFlight, event: ClusterEvent) -> None:
    flight.record(event, None, core.Node())


def test_events_before_the_pop_do_not_count() -> None:
    flight = InFlight()
    record(flight, ADD)
    a, b = pod("a"), pod("b")
    assert flight.start(a)
    record(flight, ADD)
    assert flight.start(b)
    record(flight, LABEL)
    assert [entry.event for entry in flight.events_since(a.uid) or ()] == [ADD, LABEL]
    assert [entry.event for entry in flight.events_since(b.uid) or ()] == [LABEL]
    assert words(flight) == ["a", "Node/Add", "b", "Node/UpdateNodeLabel"]


def test_the_oldest_pod_keeps_what_came_after_it() -> None:
    flight = InFlight()
    a, b = pod("a"), pod("b")
    flight.start(a)
    record(flight, ADD)
    flight.start(b)
    flight.done(b.uid)
    assert words(flight) == ["a", "Node/Add"]
    flight.done(a.uid)
    flight.done(a.uid)
    assert words(flight) == []
    assert len(flight) == 0


def test_a_pod_is_in_flight_once() -> None:
    flight = InFlight()
    assert flight.start(pod("a"))
    assert not flight.start(pod("a"))


def test_too_many_events_are_dropped_and_the_pods_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "EVENTS_MAX", 3)
    flight = InFlight()
    old, new = pod("old"), pod("new")
    flight.start(old)
    for _ in range(4):
        record(flight, ADD)
    flight.start(new)
    record(flight, LABEL)
    assert flight.events_since(old.uid) is None
    assert [entry.event for entry in flight.events_since(new.uid) or ()] == [LABEL]
    flight.done(old.uid)
    flight.done(new.uid)
    assert words(flight) == []
