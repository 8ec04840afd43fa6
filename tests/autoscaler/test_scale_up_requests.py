"""The table of scale-up requests."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.scale_up_requests import (
    TRANSITIONS,
    Effect,
    Occurrence,
    ScaleUpEvent,
    ScaleUpRequests,
    ScaleUpState,
)
from nominee.machinery.runtime.state_table import InvalidTransitionError


def handle(requests: ScaleUpRequests, event: ScaleUpEvent, *, nodes: int = 1, now: float = 0.0) -> None:
    requests.handle("g", Occurrence(event=event, now=now, nodes=nodes, error_code="x"))


def test_every_event_and_effect_is_in_the_table() -> None:
    transitions = [transition for row in TRANSITIONS.values() for transition in row.values()]
    assert {event for row in TRANSITIONS.values() for event in row} == set(ScaleUpEvent)
    assert {effect for transition in transitions for effect in transition.effects} == set(Effect)


@pytest.mark.parametrize(
    ("event", "state", "is_backed_off", "to_revert"),
    [
        (ScaleUpEvent.FULFILLED, ScaleUpState.IDLE, False, []),
        (ScaleUpEvent.TIMED_OUT, ScaleUpState.IDLE, True, [("g", 1)]),
        (ScaleUpEvent.SOME_FAILED, ScaleUpState.SCALING_UP, True, []),
        (ScaleUpEvent.ALL_FAILED, ScaleUpState.IDLE, True, []),
        (ScaleUpEvent.REFUSED, ScaleUpState.SCALING_UP, True, []),
        (ScaleUpEvent.INCREASED, ScaleUpState.SCALING_UP, False, []),
    ],
)
def test_what_ends_a_request_and_what_backs_a_group_off(
    event: ScaleUpEvent, state: ScaleUpState, is_backed_off: bool, to_revert: list[tuple[str, int]]
) -> None:
    requests = ScaleUpRequests(Options())
    handle(requests, ScaleUpEvent.INCREASED, nodes=3)
    handle(requests, event, now=10.0)
    assert requests.state("g") is state
    assert (requests.backoff.status("g", 11.0) is not None) is is_backed_off
    assert requests.take_to_revert() == to_revert
    assert requests.failures == ([("x", 1)] if is_backed_off else [])


def test_an_increase_starts_the_request_again_and_a_failure_does_not() -> None:
    requests = ScaleUpRequests(Options(max_node_provision_time=100.0))
    handle(requests, ScaleUpEvent.INCREASED, nodes=3)
    handle(requests, ScaleUpEvent.SOME_FAILED, nodes=2, now=10.0)
    request = requests.requests["g"]
    assert (request.increase, request.requested_at, request.expected_by) == (1, 0.0, 100.0)
    handle(requests, ScaleUpEvent.INCREASED, nodes=2, now=20.0)
    request = requests.requests["g"]
    assert (request.increase, request.requested_at, request.expected_by) == (3, 20.0, 120.0)


def test_a_group_without_a_request_cannot_time_out() -> None:
    with pytest.raises(InvalidTransitionError, match="node group g: nodes did not register in time"):
        handle(ScaleUpRequests(Options()), ScaleUpEvent.TIMED_OUT)
