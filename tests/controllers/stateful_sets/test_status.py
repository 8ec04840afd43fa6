"""Stateful sets: their status, and when a pod becomes available by time."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.stateful_sets.status import recheck_seconds, status_of
from nominee.machinery.wire.codec import to_json
from tests.controllers.stateful_sets.builders import NOW, member, stateful_set


def test_replicas_are_counted() -> None:
    of = stateful_set(replicas=6, minReadySeconds=10)
    pods = [
        member(of, 0, "ready"),
        member(of, 1, "ready", ready_since=995),
        member(of, 2, "running", image="v2"),
        member(of, 3, "ready-ending"),
        member(of, 4, "failed", image="v3"),
    ]
    assert to_json(status_of(of, pods, "v1", "v2", 4, NOW)) == {
        "observedGeneration": 1,
        "replicas": 5,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 1,
        "currentRevision": "v1",
        "updateRevision": "v2",
        "collisionCount": 4,
    }


@pytest.mark.parametrize(
    ("options", "states", "current"),
    [
        ({}, ("ready", "ready"), "v2"),
        ({}, ("ready", "running"), "v1"),
        ({}, ("ready", "ready-ending"), "v1"),
        ({}, ("ready",), "v1"),
        ({}, ("ready", "ready", "ready"), "v1"),
        ({"strategy": "OnDelete"}, ("ready", "ready"), "v1"),
    ],
)
def test_a_complete_update_makes_its_revision_the_current_one(
    options: dict[str, Any], states: tuple[str, ...], current: str
) -> None:
    of = stateful_set(replicas=2, **options)
    pods = [member(of, ordinal, state, image="v2") for ordinal, state in enumerate(states)]
    status = status_of(of, pods, "v1", "v2", 0, NOW)
    assert status.currentRevision == current
    assert status.currentReplicas == (2 if current == "v2" else 0)


def test_when_the_next_pod_becomes_available() -> None:
    of = stateful_set(minReadySeconds=10)
    pods = [member(of, 0), member(of, 1, ready_since=992), member(of, 2, ready_since=996)]
    assert recheck_seconds(of, pods, NOW) == 2
    assert recheck_seconds(of, pods[:1], NOW) is None
    assert recheck_seconds(stateful_set(), pods, NOW) is None
