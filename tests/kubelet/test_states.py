"""The tables of a pod's states and of its resize drive the kubelet, and are what the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.kubelet.pod_sync.sync import ON_SUCCESS
from nominee.kubelet.pods import states as pod_states
from nominee.kubelet.pods.record import LOG_LENGTH_MAX, PodRecord
from nominee.kubelet.pods.resize_transitions import Facts, move, pending_state, progress_state
from nominee.kubelet.pods.states import TRANSITIONS, PodState, Step, Trigger
from nominee.kubelet.resize import states as resize_states
from nominee.kubelet.resize.states import IN_PROGRESS, PENDING, Effect, Pending, Progress
from nominee.kubelet.resize.states import Trigger as ResizeTrigger
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.machinery.runtime.state_table import InvalidTransitionError
from tests.kubelet.executor import new_pod

DOCUMENT = Path(__file__).parents[2] / "docs" / "design" / "016-kubelet-core.md"
READ = {trigger for trigger in ResizeTrigger if trigger.name.startswith("READ_")}


def record() -> PodRecord:
    return PodRecord(new_pod("a"), PodResources(()))


def facts(**more: str) -> Facts:
    return Facts(generation=2, now=1.0, order=1, allocated=PodResources(()), **more)


def test_every_state_of_a_pod_can_be_synced() -> None:
    assert all(Trigger.SYNC in row for row in TRANSITIONS.values())
    assert set(TRANSITIONS) == set(PodState)


def test_every_trigger_and_every_step_is_used() -> None:
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(Trigger)
    steps = {step for row in TRANSITIONS.values() for each in row.values() for step in each.effects}
    assert steps == set(Step)
    assert {each for each in ON_SUCCESS.values() if isinstance(each, Trigger)} <= set(Trigger)


def test_a_pod_moves_along_the_table_and_gets_the_steps() -> None:
    one = record()
    one.fire(Trigger.ADMIT)
    one.fire(Trigger.SANDBOX_CREATED)
    one.fire(Trigger.STARTED)
    assert one.state is PodState.RUNNING
    assert one.sync.steps == TRANSITIONS[PodState.CREATED][Trigger.STARTED].effects
    assert one.log == [
        "admitted (admitted by the node)",
        "sandbox created (sandbox created)",
        "running (containers started)",
    ]


def test_an_unknown_transition_prints_the_transition_log() -> None:
    one = record()
    one.fire(Trigger.ADMIT)
    one.fire(Trigger.END)
    with pytest.raises(InvalidTransitionError) as error:
        one.fire(Trigger.STARTED)
    assert str(error.value) == (
        'pod default/a: no transition from "terminating" for "containers started"; before: '
        "admitted (admitted by the node); terminating (deleted, rejected, preempted or out of time)"
    )
    assert one.state is PodState.TERMINATING


def test_what_moves_a_resize_moves_it_from_every_state() -> None:
    """But what is read from the status after a restart, which comes first."""
    for table, states in ((PENDING, set(Pending)), (IN_PROGRESS, set(Progress))):
        assert set(table) == states
        rows = list(table.values())
        known = {trigger for row in rows for trigger in row}
        assert all(known - READ <= set(row) for row in rows)


def test_every_effect_and_every_trigger_of_a_resize_is_used() -> None:
    pending = [each for row in PENDING.values() for each in row.values()]
    in_progress = [each for row in IN_PROGRESS.values() for each in row.values()]
    effects = {effect for each in pending for effect in each.effects}
    assert effects | {effect for each in in_progress for effect in each.effects} == set(Effect)
    assert set(ResizeTrigger) == resize_states.PENDING_TRIGGERS | resize_states.PROGRESS_TRIGGERS


@pytest.mark.parametrize("begin", [None, *sorted(READ)])
@pytest.mark.parametrize("trigger", sorted(set(ResizeTrigger) - READ))
def test_the_effects_of_a_transition_lead_to_its_state(
    begin: ResizeTrigger | None, trigger: ResizeTrigger
) -> None:
    one = record()
    if begin is not None:
        move(one, begin, facts(reason="Error" if begin is ResizeTrigger.READ_ERROR else ""))
    pending, progress = pending_state(one), progress_state(one)
    move(one, trigger, facts(reason="OutOfcpu", message="full") if trigger == "does not fit now" else facts())
    if trigger in PENDING[pending]:
        pending = PENDING[pending][trigger].to
    if trigger in IN_PROGRESS[progress]:
        progress = IN_PROGRESS[progress][trigger].to
    assert (pending_state(one), progress_state(one)) == (pending, progress)


def test_a_newer_request_waits_while_an_older_one_is_actuated() -> None:
    one = record()
    move(one, ResizeTrigger.ALLOCATE, facts())
    events = move(one, ResizeTrigger.DEFER, facts(reason="OutOfcpu", message="full"))
    assert (pending_state(one), progress_state(one)) == (Pending.DEFERRED, Progress.IN_PROGRESS)
    assert [event.reason for event in events] == ["ResizeDeferred"]
    assert move(one, ResizeTrigger.DEFER, facts(reason="OutOfcpu", message="fuller")) == [], "nothing new"
    events = move(one, ResizeTrigger.ACTUATE, facts())
    assert [event.reason for event in events] == ["ResizeCompleted"]
    assert (pending_state(one), progress_state(one)) == (Pending.DEFERRED, Progress.NONE)


def test_a_condition_is_read_once() -> None:
    one = record()
    move(one, ResizeTrigger.READ_DEFERRED, facts())
    with pytest.raises(InvalidTransitionError, match=r"before: Deferred \(read from the status: Deferred\)"):
        move(one, ResizeTrigger.READ_INFEASIBLE, facts())


def test_the_transition_log_has_an_end() -> None:
    one = record()
    for _ in range(40):
        move(one, ResizeTrigger.DEFER, facts(reason="OutOfcpu"))
        move(one, ResizeTrigger.REVERT, facts())
    assert one.log is not None
    assert len(one.log) == LOG_LENGTH_MAX


def test_the_documentation_shows_the_tables() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert pod_states.TRANSITIONS.diagram() in document
    assert resize_states.resize_diagram() in document
