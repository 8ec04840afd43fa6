"""Queueing hints of the real kube-scheduler 1.36.2: one plugin's verdict on one event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message

from machinery.api.pb import core, storage
from machinery.wire import codec
from scheduler.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from scheduler.framework.interface import Plugin
from scheduler.framework.types import PodInfo
from scheduler.plugins.registry import IN_TREE
from tests.scheduler.golden import World, build_world, read_lines, read_object

LINES = list(read_lines("hints.jsonl"))
REGISTRY, CASES = LINES[0], LINES[1:]


def event_of(document: Mapping[str, Any]) -> ClusterEvent:
    action = ActionType(0)
    for name in document["action"]:
        action |= ActionType[name]
    return ClusterEvent(EventResource(document["resource"]), action)


def is_served(document: Mapping[str, Any] | None) -> bool:
    return document is None or read_any(document) is not None


def read_any(document: Mapping[str, Any]) -> Message | None:
    """Also kinds that only hints know."""
    known: dict[str, type[Message]] = {"CSINode": storage.CSINode, "CSIDriver": storage.CSIDriver}
    known["CSIStorageCapacity"] = storage.CSIStorageCapacity
    if document["kind"] in known:
        return codec.from_json(known[document["kind"]], document)
    return read_object(document)


def world_of(case: Mapping[str, Any]) -> World:
    return build_world(list(case.get("objects", ())))


def registrations(world: World, plugin: str) -> Sequence[ClusterEventWithHint]:
    found = world.framework.events_to_register().get(plugin, ())
    assert found is not None
    return found


def verdict(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the queue's result: Queue as soon as one matching registration returns it."""
    world = world_of(case)
    event = event_of(case["event"])
    matching = [r for r in registrations(world, case["plugin"]) if r.event.matches(event)]
    if not matching:
        return {"registered": False}
    pod = read_object(case["pod"])
    assert isinstance(pod, core.Pod)
    hints = []
    old = None if case["old"] is None else read_any(case["old"])
    new = None if case["new"] is None else read_any(case["new"])
    for registration in matching:
        if registration.hint is None:
            hints.append(("Queue", "default"))
            continue
        try:
            hints.append((registration.hint(PodInfo(pod), old, new).value, "plugin"))
        except Exception as error:  # noqa: BLE001  # whatever it is, its words are compared
            hints.append((f"error: {error}", "plugin"))
    said = next((h for h in hints if h[0] != "QueueSkip"), hints[0])
    return {"registered": True, "hint": said[0], "via": said[1]}


MINE = [c for c in CASES if c["plugin"] in IN_TREE and is_served(c["old"]) and is_served(c["new"])]


@pytest.mark.parametrize("case", MINE, ids=lambda case: case["name"])
def test_hint(case: Mapping[str, Any]) -> None:
    assert verdict(case) == {k: case[k] for k in ("registered", "hint", "via") if k in case}


def test_enough_cases() -> None:
    assert len(MINE) > 150


def test_action_bits() -> None:
    assert {action.name: int(action) for action in ActionType} | {
        "All": int(ActionType.All),
        "Update": int(ActionType.Update),
    } == REGISTRY["actionBits"]


@pytest.mark.parametrize("plugin", [p for p in REGISTRY["plugins"] if p in IN_TREE])
def test_registrations(plugin: str) -> None:
    world = build_world([])
    found = sorted(
        (r.event.resource.value, int(r.event.action), "default" if r.hint is None else "plugin")
        for r in registrations(world, plugin)
    )
    wanted = sorted((e["resource"], int(event_of(e).action), e["hint"]) for e in REGISTRY["plugins"][plugin])
    assert found == wanted


def test_every_plugin_with_registrations_is_known_to_the_golden_data() -> None:
    registered = build_world([]).framework.events_to_register()
    assert set(registered) <= set(REGISTRY["plugins"])
    assert all(isinstance(IN_TREE[name], type) and issubclass(IN_TREE[name], Plugin) for name in registered)
