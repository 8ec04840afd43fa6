"""The states of one attempt to schedule a pod, as a table that drives it.

`TRANSITIONS` maps a state and an event to the next state and to the effects that the shell performs then,
in order; the outcome of the last effect is the next event. A pair that is not in the table is a bug and
raises InvalidTransitionError. `python -m nominee.scheduler.attempts.states` prints the diagram in
docs/design/004-scheduler.md.

Source: kube-scheduler 1.36, bindingCycle and handleBindingCycleError; KEP-5278, "The scheduler puts
NominatedNodeName".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class AttemptState(StrEnum):
    """The states of an attempt."""

    SCHEDULING = "scheduling"  # popped; plugins look for a node
    RESERVED = "reserved"  # assumed on a node, in memory only
    NOMINATED = "nominated"  # and status.nominatedNodeName names it (or could not be written)
    WAITING_ON_PERMIT = "waiting on Permit"
    PRE_BINDING = "in PreBind"
    BINDING = "binding"
    BOUND = "bound"
    REQUEUED = "back in the queue"


class Event(StrEnum):
    """The events that move an attempt to its next state."""

    SCHEDULED = "a node was found"
    NOMINATE = "a wait is expected"
    WAIT = "Permit waits"
    PRE_BIND = "PreBind has work"
    BIND = "nothing more to wait for"
    BOUND = "the API server accepted the binding"
    FAILED = "failed"
    REJECTED = "rejected"


class Effect(StrEnum):
    """The work that the shell does on a transition."""

    PRE_FLIGHT = "wait for earlier writes, run PreBindPreFlight"
    NOMINATE = "write the nomination"
    WAIT_ON_PERMIT = "wait on Permit"
    LEAVE_FLIGHT = "keep no more events for the pod"
    PRE_BIND = "run PreBind"
    BIND = "run Bind"
    RECORD_BINDING = "record event and metrics"
    POST_BIND = "run PostBind"
    UNRESERVE = "unreserve, forget the pod"
    ANNOUNCE_ROOM = "move the pods that its room may help"
    REQUEUE = "requeue, record event, write status"


_S, _E, _F = AttemptState, Event, Effect
# A rejected pod is requeued first: the room that it leaves itself is no reason to try it again.
_UNDO: Final = {
    _E.FAILED: Transition(_S.REQUEUED, (_F.UNRESERVE, _F.ANNOUNCE_ROOM, _F.REQUEUE)),
    _E.REJECTED: Transition(_S.REQUEUED, (_F.UNRESERVE, _F.REQUEUE, _F.ANNOUNCE_ROOM)),
}
_WAIT: Final = Transition(_S.WAITING_ON_PERMIT, (_F.WAIT_ON_PERMIT,))
# From PreBind on a failure is no rejection that an event could undo.
_PRE_BIND: Final = Transition(_S.PRE_BINDING, (_F.LEAVE_FLIGHT, _F.PRE_BIND))
_BIND: Final = Transition(_S.BINDING, (_F.LEAVE_FLIGHT, _F.BIND))

TRANSITIONS: Final[StateTable[AttemptState, Event, Effect]] = StateTable(
    {
        _S.SCHEDULING: {
            _E.SCHEDULED: Transition(_S.RESERVED, (_F.PRE_FLIGHT,)),
            _E.FAILED: Transition(_S.REQUEUED, (_F.REQUEUE,)),
        },
        _S.RESERVED: {
            _E.NOMINATE: Transition(_S.NOMINATED, (_F.NOMINATE,)),
            _E.WAIT: _WAIT,
            _E.PRE_BIND: _PRE_BIND,
            _E.BIND: _BIND,
            **_UNDO,
        },
        _S.NOMINATED: {_E.WAIT: _WAIT, _E.PRE_BIND: _PRE_BIND, **_UNDO},
        _S.WAITING_ON_PERMIT: {_E.PRE_BIND: _PRE_BIND, _E.BIND: _BIND, **_UNDO},
        _S.PRE_BINDING: {_E.BIND: Transition(_S.BINDING, (_F.BIND,)), **_UNDO},
        _S.BINDING: {_E.BOUND: Transition(_S.BOUND, (_F.RECORD_BINDING, _F.POST_BIND)), **_UNDO},
        _S.BOUND: {},
        _S.REQUEUED: {},
    },
    start=_S.SCHEDULING,
    style=DiagramStyle(ends=True),
)


@dataclass(frozen=True, slots=True)
class BindingPlan:
    """The choices that decide the path of a binding cycle.

    `nominates`: NominatedNodeNameForExpectation is on; `waits`: a Permit plugin returned Wait; `has_work`:
    some PreBind plugin has work.
    """

    nominates: bool
    waits: bool
    has_work: bool


def next_event(state: AttemptState, plan: BindingPlan) -> Event:
    """Return the event that follows when the effects of the transition to `state` have succeeded."""
    if state is AttemptState.BINDING:
        return Event.BOUND
    if state is AttemptState.RESERVED and plan.nominates and (plan.waits or plan.has_work):
        return Event.NOMINATE
    if state in (AttemptState.RESERVED, AttemptState.NOMINATED) and plan.waits:
        return Event.WAIT
    return Event.PRE_BIND if plan.has_work and state is not AttemptState.PRE_BINDING else Event.BIND


class Progress:
    """The state of one attempt and its transition log. Times are monotonic seconds."""

    __slots__ = ("_log", "_name", "state")

    def __init__(self, name: str, at: float) -> None:
        """Start in the first state; `name` is the pod's, for messages."""
        self._name = name
        self.state = AttemptState.SCHEDULING
        self._log: list[tuple[float, AttemptState]] = [(at, self.state)]

    def apply(self, event: Event, at: float) -> tuple[Effect, ...]:
        """Move on and return the effects to perform.

        Raises:
            InvalidTransitionError: the table does not allow the event in this state.
        """
        transition = TRANSITIONS.transition(
            self.state, event, lambda: f'{self._name}: no transition for "{event}"; {self.log()}'
        )
        self.state = transition.to
        self._log.append((at, self.state))
        return transition.effects

    def log(self) -> str:
        """Return `scheduling, reserved +0.3ms, binding +0.5ms`: milliseconds since the beginning."""
        begin = self._log[0][0]
        later = (f"{state} +{(at - begin) * 1000:.1f}ms" for at, state in self._log[1:])
        return ", ".join([str(self._log[0][1]), *later])


if __name__ == "__main__":
    print(TRANSITIONS.diagram())
