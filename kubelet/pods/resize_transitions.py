"""Moves a pod's resize along its tables, performing their effects on the pod's record. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.kubelet.instructions import RecordEvent
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resize import conditions, messages
from nominee.kubelet.resize.conditions import ResizeCondition
from nominee.kubelet.resize.states import (
    IN_PROGRESS,
    PENDING,
    PENDING_TRIGGERS,
    PROGRESS_TRIGGERS,
    Effect,
    Pending,
    Progress,
    Trigger,
)
from nominee.kubelet.resources.pod_resources import PodResources


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The inputs of effects; `now` in seconds since the epoch, `order` counts the transitions on the node.

    `reason` is the raw one of an admission (OutOfcpu, ...), `allocated` what the pod is allocated.
    """

    generation: int
    now: float
    order: int
    allocated: PodResources
    reason: str = ""
    message: str = ""


_WORD: Final = {Pending.DEFERRED: "ResizeDeferred", Pending.INFEASIBLE: "ResizeInfeasible"}


def pending_state(record: PodRecord) -> Pending:
    return Pending.NONE if record.pending is None else Pending(record.pending.reason)


def progress_state(record: PodRecord) -> Progress:
    if record.in_progress is None:
        return Progress.NONE
    return Progress.ERROR if record.in_progress.reason == conditions.ERROR else Progress.IN_PROGRESS


def move(record: PodRecord, trigger: Trigger, facts: Facts) -> list[RecordEvent]:
    """Perform the effects of a trigger and return the events to record.

    Raises:
        InvalidTransitionError: a table that knows the trigger does not allow it in the present state.
    """
    events: list[RecordEvent] = []
    if trigger in PENDING_TRIGGERS:
        _move_pending(record, trigger, facts, events)
    if trigger in PROGRESS_TRIGGERS:
        _move_progress(record, trigger, facts, events)
    return events


def _move_pending(record: PodRecord, trigger: Trigger, facts: Facts, events: list[RecordEvent]) -> None:
    state = pending_state(record)
    transition = PENDING.transition(state, trigger, lambda: record.no_transition(state, trigger))
    for effect in transition.effects:
        match effect:
            case Effect.SET_PENDING:
                held = _condition(facts, transition.to.value, facts.message)
                record.pending = conditions.pending(record.pending, held)
            case Effect.CLEAR_PENDING:
                record.pending = None
            case Effect.RECORD_PENDING:
                if conditions.is_new_pending(
                    record.pending, reason=transition.to.value, generation=facts.generation
                ):
                    sentence = f"Pod resize {facts.reason}"
                    events.append(_warning(record, _WORD[transition.to], sentence, facts.generation, facts))
    if transition.to is not state:
        record.note(f"{transition.to} ({trigger})")


def _move_progress(record: PodRecord, trigger: Trigger, facts: Facts, events: list[RecordEvent]) -> None:
    state = progress_state(record)
    transition = IN_PROGRESS.transition(state, trigger, lambda: record.no_transition(state, trigger))
    for effect in transition.effects:
        _perform(record, effect, facts, events)
    if transition.to is not state:
        record.note(f"{transition.to} ({trigger})")


def _perform(record: PodRecord, effect: Effect, facts: Facts, events: list[RecordEvent]) -> None:
    pod, old = record.pod, record.in_progress
    generation = facts.generation if old is None else old.observed_generation
    match effect:
        case Effect.START:
            record.in_progress = _condition(facts, "")
        case Effect.SET_IN_PROGRESS:
            record.in_progress = conditions.in_progress(old, _condition(facts, facts.reason, facts.message))
        case Effect.SET_ERROR:
            record.in_progress = conditions.in_progress(
                old, _condition(facts, conditions.ERROR, facts.message)
            )
        case Effect.CLEAR_IN_PROGRESS:
            record.in_progress = None
        case Effect.RECORD_STARTED:
            text = messages.resize_message(messages.STARTED, pod, facts.allocated, facts.generation)
            events.append(RecordEvent(pod, "Normal", "ResizeStarted", text))
        case Effect.RECORD_COMPLETED:
            text = messages.resize_message(messages.COMPLETED, pod, facts.allocated, generation)
            events.append(RecordEvent(pod, "Normal", "ResizeCompleted", text))
        case Effect.RECORD_ERROR:
            if conditions.is_new_error(old, facts.message):
                events.append(_warning(record, "ResizeError", messages.FAILED, generation, facts))


def _condition(facts: Facts, reason: str, message: str = "") -> ResizeCondition:
    return ResizeCondition(
        reason=reason,
        message=message,
        observed_generation=facts.generation,
        since=facts.now,
        probed=facts.now,
        order=facts.order,
    )


def _warning(record: PodRecord, reason: str, sentence: str, generation: int, facts: Facts) -> RecordEvent:
    text = messages.resize_message(sentence, record.pod, record.desired, generation, facts.message)
    return RecordEvent(record.pod, "Warning", reason, text)
