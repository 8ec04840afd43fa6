"""A pod that is deleted and created again under its name while it is in flight (kubernetes#138324)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.queue.replay import World


def manifest(uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": uid},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c"}]},
    }


@pytest.mark.parametrize(
    "failure",
    [
        {"op": "unschedulable", "plugins": ["NodeResourcesFit"]},
        {"op": "unschedulable", "plugins": [], "nominate": {"mode": "Override", "node": "n1"}},
        {"op": "error"},
    ],
)
def test_the_new_pod_starts_at_zero(failure: dict[str, Any]) -> None:
    world = World([])
    world.do({"op": "add", "object": manifest("old"), "t": 0.1})
    world.do({"op": "pop", "t": 0.2})
    world.do({"op": "delete", "pod": "a", "t": 0.3})
    world.do({"op": "add", "object": manifest("new"), "t": 0.4})
    state = world.state()
    assert (state["active"], state["inFlight"], state["attempts"]) == (["a"], ["a"], {"a": 0})
    world.do({**failure, "pod": "a", "t": 0.5})
    state = world.state()
    assert (state["active"], state["inFlight"], state["attempts"]) == (["a"], [], {"a": 0})
    assert (state["nominated"], state["unschedulableCount"], state["consecutiveErrors"]) == ({}, {}, {})
    assert world.do({"op": "pop", "t": 0.6}) == {"popped": "a", "poppedFrom": "active"}
    popped = world.popped["a"]
    assert (popped.pod_info.uid, popped.attempts) == ("new", 1)
