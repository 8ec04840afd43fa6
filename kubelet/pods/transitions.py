"""Moves a pod along the table of its states. Pure."""

from __future__ import annotations

from nominee.kubelet.pods.record import PodRecord, entry
from nominee.kubelet.pods.states import TRANSITIONS, Trigger


def fire(record: PodRecord, trigger: Trigger) -> None:
    """Move the pod, and give its sync the steps of the transition.

    Raises:
        InvalidTransitionError: the table does not allow the trigger in the pod's state.
    """
    state = record.state
    transition = TRANSITIONS.transition(state, trigger, lambda: record.no_transition(state, trigger))
    record.sync.steps = transition.effects
    if transition.to is not state:
        record.state = transition.to
        record.note(entry(transition.to, trigger))
