"""Moves a pod along the table of its states. Pure."""

from __future__ import annotations

from nominee.kubelet.pods.record import PodRecord, entry
from nominee.kubelet.pods.states import TRANSITIONS, Trigger
from nominee.kubelet.transitions import UnknownTransitionError
from nominee.machinery.api.objects import key_of


def fire(record: PodRecord, trigger: Trigger) -> None:
    """Move the pod, and give its sync the steps of the transition.

    Raises:
        UnknownTransitionError: the table does not allow the trigger in the pod's state.
    """
    state = record.state
    transition = TRANSITIONS[state].get(trigger)
    if transition is None:
        raise UnknownTransitionError(key_of(record.pod), state, trigger, record.log or ())
    record.sync.steps = transition.effects
    if transition.to is not state:
        record.state = transition.to
        record.note(entry(transition.to, trigger))
