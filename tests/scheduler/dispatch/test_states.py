"""The table of a pod's calls drives the call queue, and is what the documentation shows."""

from __future__ import annotations

from pathlib import Path

from nominee.scheduler.dispatch.states import TRANSITIONS, CallState, Effect, Trigger

DOCUMENT = Path(__file__).parents[3] / "docs" / "design" / "004-scheduler.md"


def test_the_document_shows_the_table() -> None:
    assert TRANSITIONS.diagram() in DOCUMENT.read_text(encoding="utf-8")


def test_every_state_trigger_and_effect_is_in_the_table_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(CallState)
    transitions = [(trigger, each) for row in TRANSITIONS.values() for trigger, each in row.items()]
    assert {trigger for trigger, _ in transitions} == set(Trigger)
    assert {effect for _, each in transitions for effect in each.effects} == set(Effect)
    reached = {CallState.NONE}
    for _ in CallState:
        reached |= {each.to for state in reached for each in TRANSITIONS[state].values()}
    assert reached == set(CallState)


def test_a_pod_without_calls_releases_those_who_wait_and_only_it() -> None:
    for state, row in TRANSITIONS.items():
        for each in row.values():
            is_last = each.to is CallState.NONE and state is not CallState.NONE
            assert (Effect.RELEASE in each.effects) == is_last


def test_only_what_a_call_under_way_can_cause_ends_it() -> None:
    for state in (CallState.UNDER_WAY, CallState.FOLLOWED):
        for trigger, each in TRANSITIONS[state].items():
            ends = Effect.SETTLE in each.effects or Effect.RETURN in each.effects
            assert ends == (trigger in (Trigger.WRITTEN, Trigger.FAILED, Trigger.UNREACHABLE))
