"""Queueing hints of the real kube-scheduler 1.36.2: one plugin's verdict on one event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import GateError, Gates
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from nominee.scheduler.framework.interface import EnqueueExtensions
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.object_changes import node_changes, pod_changes
from nominee.scheduler.plugins.registry import IN_TREE
from nominee.scheduler.queue.hints import HintMap
from tests.scheduler.golden import GOLDEN_VERSION, World, build_world, read_object
from tests.scheduler.queue.own_plugins import own_registrations
from tests.support import golden_differences
from tests.support.recordings import read

REGISTRY, *CASES = read("hints.jsonl")
NOT_RECORDED = golden_differences.read("plugins")


def event_of(document: Mapping[str, Any]) -> ClusterEvent:
    action = ActionType(0)
    for name in document["action"]:
        action |= ActionType[name]
    return ClusterEvent(EventResource(document["resource"]), action)


def read_changed(document: Mapping[str, Any] | None) -> Message | None:
    """Return the object of an event; None for the old object of an addition and the new one of a deletion."""
    if document is None:
        return None
    changed = read_object(document)
    assert changed is not None, f"kind {document['kind']} is not served"
    return changed


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
    old, new = read_changed(case["old"]), read_changed(case["new"])
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_hint(case: Mapping[str, Any]) -> None:
    assert case["plugin"] in IN_TREE
    assert verdict(case) == {k: case[k] for k in ("registered", "hint", "via") if k in case}


@pytest.mark.parametrize("case", [case for case in CASES if "derived" in case], ids=lambda case: case["name"])
def test_events_of_the_change(case: Mapping[str, Any]) -> None:
    old, new = read_changed(case["old"]), read_changed(case["new"])
    if isinstance(old, core.Pod) and isinstance(new, core.Pod):
        events = pod_changes(old, new)
    else:
        assert isinstance(old, core.Node)
        assert isinstance(new, core.Node)
        events = node_changes(old, new)
    assert list(events) == [event_of(each) for each in case["derived"]]


def test_gates() -> None:
    gates = Gates("scheduler", GOLDEN_VERSION)
    recorded = {name: value for name, value in REGISTRY["gates"].items() if isinstance(value, bool)}
    assert {name: gates.enabled(name) for name in recorded} == recorded
    unknown = {name for name in REGISTRY["gates"] if name not in recorded}
    assert unknown == {"InPlacePodVerticalScalingSchedulerPreemption"}
    with pytest.raises(GateError, match=r"PreAlpha at emulated version 1\.36"):
        Gates("scheduler", GOLDEN_VERSION, dict.fromkeys(unknown, True))


def test_pre_enqueue_plugins() -> None:
    framework = build_world([]).framework
    recorded = [p.name for p in framework.pre_enqueue_plugins if p.name not in NOT_RECORDED]
    assert recorded == REGISTRY["preEnqueuePlugins"]


def test_action_bits() -> None:
    bits = {action.name: int(action) for action in ActionType} | {
        "All": int(ActionType.All),
        "Update": int(ActionType.Update),
    }
    later = {"UpdatePodScaleUp": 8192, "UpdateNodePreemptionPolicy": 16384}  # 1.37, KEP-5836
    assert bits == REGISTRY["actionBits"] | later


Row = tuple[str, int, str]


def rows(registered: Iterable[ClusterEventWithHint], without_hint: str) -> list[Row]:
    return sorted(
        (each.event.resource.value, int(each.event.action), "plugin" if each.hint else without_hint)
        for each in registered
    )


def recorded_rows(events: Iterable[Mapping[str, Any]]) -> list[Row]:
    return sorted((each["resource"], int(event_of(each).action), each["hint"]) for each in events)


@pytest.mark.parametrize("name", REGISTRY["plugins"])
def test_registrations(name: str) -> None:
    world = build_world([])
    assert rows(registrations(world, name), "default") == recorded_rows(REGISTRY["plugins"][name])
    plugin = world.framework.plugins[name]
    assert isinstance(plugin, EnqueueExtensions)
    assert rows(plugin.events_to_register(), "none") == recorded_rows(REGISTRY["eventsToRegister"][name])


def test_the_same_plugins_register_events() -> None:
    framework = build_world([]).framework
    assert set(NOT_RECORDED) <= set(framework.plugins), "tests/golden_differences.toml names another plugin"
    registered = set(framework.events_to_register()) - set(NOT_RECORDED)
    assert registered == set(REGISTRY["plugins"]) == set(REGISTRY["eventsToRegister"])


def test_watched_events() -> None:
    """The queue itself needs every event of pods, whatever the plugins register."""
    own = own_registrations()
    union = HintMap(
        each for name in own if name not in NOT_RECORDED for each in own[name]
    ).actions_by_resource()
    watched = {resource.value: action for resource, action in union.items()}
    watched["Pod"] |= ActionType.All
    assert watched == {
        name: event_of({"resource": name, "action": actions}).action
        for name, actions in REGISTRY["watchedUnion"].items()
    }
