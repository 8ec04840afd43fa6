"""The table of a resize's way: whole, and kept."""

from __future__ import annotations

import pytest

from kubelet.node.state import PodRecord
from kubelet.resize.conditions import ResizeCondition
from kubelet.resize.states import WAY, Cause, ResizeState, UnknownStepError, diagram
from kubelet.resources.pod_resources import PodResources
from machinery.api.pb import core

DEFERRED = ResizeCondition(reason="Deferred")
PROGRESS = ResizeCondition()


def record() -> PodRecord:
    pod = core.Pod()
    pod.metadata.namespace, pod.metadata.name = "default", "a"
    return PodRecord(pod, PodResources(()))


def test_every_cause_says_what_it_does_in_every_state() -> None:
    for cause, steps in WAY.items():
        if cause is not Cause.TAKE_OVER:
            assert set(steps) == set(ResizeState), cause
        assert all(steps.values())


def test_an_unknown_step_tells_the_story() -> None:
    one = record()
    one.move(Cause.DEFER, pending=DEFERRED, in_progress=None)
    one.move(Cause.ALLOCATE, pending=None, in_progress=PROGRESS)
    with pytest.raises(UnknownStepError) as error:
        one.move(Cause.ACTUATE, pending=None, in_progress=PROGRESS)
    assert str(error.value) == (
        "pod default/a: in progress -> in progress because runtime agrees with allocation; "
        "before: deferred (no room now); in progress (allocated)"
    )
    assert one.in_progress is PROGRESS


def test_a_story_has_an_end() -> None:
    one = record()
    for _ in range(40):
        one.move(Cause.DEFER, pending=DEFERRED, in_progress=None)
        one.move(Cause.REVERT, pending=None, in_progress=None)
    assert one.story is not None
    assert len(one.story) == 16


def test_the_diagram_shows_the_way() -> None:
    assert "    DEFERRED --> IN_PROGRESS: allocated\n" in diagram()
    assert "SETTLED --> SETTLED" not in diagram()
