"""The table of an attempt's states drives binding cycles, and is what the documentation shows."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nominee.machinery.runtime.state_table import InvalidTransitionError
from nominee.scheduler.attempts.states import (
    TRANSITIONS,
    AttemptState,
    BindingPlan,
    Effect,
    Event,
    Progress,
    next_event,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "design" / "004-scheduler.md"


def test_the_document_shows_the_table() -> None:
    assert TRANSITIONS.diagram() in DOCUMENT.read_text(encoding="utf-8")


def test_every_state_event_and_effect_is_in_the_table_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(AttemptState)
    transitions = [(event, each) for row in TRANSITIONS.values() for event, each in row.items()]
    assert {event for event, _ in transitions} == set(Event)
    assert {effect for _, each in transitions for effect in each.effects} == set(Effect)
    reached = {AttemptState.SCHEDULING}
    for _ in AttemptState:
        reached |= {each.to for state in reached for each in TRANSITIONS[state].values()}
    assert reached == set(AttemptState)


def path(plan: BindingPlan) -> tuple[list[AttemptState], list[Effect]]:
    """Drive a binding cycle in which every effect succeeds."""
    progress = Progress("default/p", 0.0)
    effects = [*progress.apply(Event.SCHEDULED, 0.0)]
    states = [progress.state]
    while progress.state is not AttemptState.BOUND:
        effects += progress.apply(next_event(progress.state, plan), 0.0)
        states.append(progress.state)
    return states, effects


@pytest.mark.parametrize(("nominates", "waits", "has_work"), list(itertools.product((False, True), repeat=3)))
def test_the_path_of_a_binding_cycle(nominates: bool, waits: bool, has_work: bool) -> None:
    states, effects = path(BindingPlan(nominates, waits, has_work))
    assert states[0] is AttemptState.RESERVED
    assert states[-2:] == [AttemptState.BINDING, AttemptState.BOUND]
    assert (AttemptState.NOMINATED in states) == (nominates and (waits or has_work))
    assert (AttemptState.WAITING_ON_PERMIT in states) == waits
    assert (AttemptState.PRE_BINDING in states) == has_work
    assert effects.count(Effect.LEAVE_FLIGHT) == 1
    left = effects.index(Effect.LEAVE_FLIGHT)
    after_permit = effects.index(Effect.PRE_BIND if has_work else Effect.BIND)
    assert left == after_permit - 1


@pytest.mark.parametrize("state", [s for s in AttemptState if Event.FAILED in TRANSITIONS[s]])
def test_a_failure_requeues_and_undoes_a_reservation(state: AttemptState) -> None:
    failed = TRANSITIONS[state][Event.FAILED]
    assert failed.to is AttemptState.REQUEUED
    if state is AttemptState.SCHEDULING:
        assert failed.effects == (Effect.REQUEUE,)
        return
    rejected = TRANSITIONS[state][Event.REJECTED]
    assert rejected.to is AttemptState.REQUEUED
    assert failed.effects == (Effect.UNRESERVE, Effect.ANNOUNCE_ROOM, Effect.REQUEUE)
    assert rejected.effects == (Effect.UNRESERVE, Effect.REQUEUE, Effect.ANNOUNCE_ROOM)


def test_a_bound_pod_is_not_requeued() -> None:
    progress = Progress("default/p", 10.0)
    for number, event in enumerate((Event.SCHEDULED, Event.BIND, Event.BOUND), start=1):
        progress.apply(event, 10.0 + number / 1000)
    with pytest.raises(InvalidTransitionError) as caught:
        progress.apply(Event.FAILED, 11.0)
    assert str(caught.value) == (
        'default/p: no transition for "failed"; scheduling, reserved +1.0ms, binding +2.0ms, bound +3.0ms'
    )
