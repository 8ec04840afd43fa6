"""The states of a supervised process, as a table.

A pair of state and trigger that is not in `TRANSITIONS` is an error (`InvalidTransitionError`). The diagram
in the docs is printed from the table by `python -m nominee.localcluster.supervisor.model.states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class ChildState(StrEnum):
    """The state of a process."""

    DOWN = "down"  # not wanted
    STARTING = "starting"  # spawned (or resumed), not yet seen ready
    READY = "ready"
    PAUSED = "paused"  # stopped by SIGSTOP
    STOPPING = "stopping"  # asked to end, stays down afterwards
    RESTARTING = "restarting"  # asked to end, comes back
    BACKOFF = "backoff"  # crashed, waits to be started again
    CRASHED = "crashed"  # crashed and is left down


COMING_UP: Final = frozenset({ChildState.STARTING, ChildState.RESTARTING, ChildState.BACKOFF})
"""The states of a process that will be ready without a further command."""


class Trigger(StrEnum):
    """An event or command that changes a process's state."""

    START = "start"
    STOP = "stop"
    KILL = "kill"  # stop --kill
    RESTART = "restart"
    RESTART_KILL = "restart --kill"
    PAUSE = "pause"
    RESUME = "resume"
    BECAME_READY = "became ready"
    DIED = "died, will restart"
    DIED_FOR_GOOD = "died, stays down"
    DEADLINE = "deadline"  # the time limit of the present state


class Effect(StrEnum):
    """An operation that the shell performs during a transition."""

    SPAWN = "spawn"
    TERM = "SIGTERM"
    KILL = "SIGKILL"
    STOP = "SIGSTOP"
    CONT = "SIGCONT"


_S, _T, _E = ChildState, Trigger, Effect

_ALIVE: Mapping[Trigger, Transition[ChildState, Effect]] = {
    _T.START: Transition(_S.STARTING),
    _T.STOP: Transition(_S.STOPPING, (_E.TERM,)),
    _T.KILL: Transition(_S.STOPPING, (_E.KILL,)),
    _T.RESTART: Transition(_S.RESTARTING, (_E.TERM,)),
    _T.RESTART_KILL: Transition(_S.RESTARTING, (_E.KILL,)),
    _T.PAUSE: Transition(_S.PAUSED, (_E.STOP,)),
    _T.DIED: Transition(_S.BACKOFF),
    _T.DIED_FOR_GOOD: Transition(_S.CRASHED),
}
_NOT_RUNNING: Mapping[Trigger, Transition[ChildState, Effect]] = {
    _T.START: Transition(_S.STARTING, (_E.SPAWN,)),
    _T.RESTART: Transition(_S.STARTING, (_E.SPAWN,)),
    _T.RESTART_KILL: Transition(_S.STARTING, (_E.SPAWN,)),
    _T.STOP: Transition(_S.DOWN),
    _T.KILL: Transition(_S.DOWN),
}

_STYLE = DiagramStyle(identifier=str, names=False, loops="with effects", effects=True, start_label="start")
TRANSITIONS: StateTable[ChildState, Trigger, Effect] = StateTable(
    {
        _S.DOWN: _NOT_RUNNING,
        _S.CRASHED: _NOT_RUNNING,
        _S.BACKOFF: {**_NOT_RUNNING, _T.DEADLINE: Transition(_S.STARTING, (_E.SPAWN,))},
        _S.STARTING: {**_ALIVE, _T.BECAME_READY: Transition(_S.READY)},
        _S.READY: {
            **_ALIVE,
            _T.START: Transition(_S.READY),
            _T.BECAME_READY: Transition(_S.READY),
            _T.RESUME: Transition(_S.READY),
        },
        # A stopped process receives SIGTERM only after SIGCONT; SIGKILL needs none.
        _S.PAUSED: {
            _T.RESUME: Transition(_S.STARTING, (_E.CONT,)),
            _T.PAUSE: Transition(_S.PAUSED),
            _T.STOP: Transition(_S.STOPPING, (_E.TERM, _E.CONT)),
            _T.KILL: Transition(_S.STOPPING, (_E.KILL,)),
            _T.RESTART: Transition(_S.RESTARTING, (_E.TERM, _E.CONT)),
            _T.RESTART_KILL: Transition(_S.RESTARTING, (_E.KILL,)),
            _T.DIED: Transition(_S.BACKOFF),
            _T.DIED_FOR_GOOD: Transition(_S.CRASHED),
        },
        _S.STOPPING: {
            _T.STOP: Transition(_S.STOPPING),
            _T.KILL: Transition(_S.STOPPING, (_E.KILL,)),
            _T.START: Transition(_S.RESTARTING),
            _T.RESTART: Transition(_S.RESTARTING),
            _T.RESTART_KILL: Transition(_S.RESTARTING, (_E.KILL,)),
            _T.DIED: Transition(_S.DOWN),
            _T.DIED_FOR_GOOD: Transition(_S.DOWN),
            _T.DEADLINE: Transition(_S.STOPPING, (_E.KILL,)),
        },
        _S.RESTARTING: {
            _T.STOP: Transition(_S.STOPPING),
            _T.KILL: Transition(_S.STOPPING, (_E.KILL,)),
            _T.START: Transition(_S.RESTARTING),
            _T.RESTART: Transition(_S.RESTARTING),
            _T.RESTART_KILL: Transition(_S.RESTARTING, (_E.KILL,)),
            _T.DIED: Transition(_S.STARTING, (_E.SPAWN,)),
            _T.DIED_FOR_GOOD: Transition(_S.STARTING, (_E.SPAWN,)),
            _T.DEADLINE: Transition(_S.RESTARTING, (_E.KILL,)),
        },
    },
    start=_S.STARTING,
    style=DiagramStyle(identifier=str, names=False, loops="with effects", effects=True, start_label="start"),
)

RUNNING = frozenset(
    {ChildState.STARTING, ChildState.READY, ChildState.PAUSED, ChildState.STOPPING, ChildState.RESTARTING}
)
"""States in which a process exists."""


def step(state: ChildState, trigger: Trigger) -> Transition[ChildState, Effect]:
    """Return the transition.

    Raises:
        InvalidTransitionError: it is not in the table; the message is for the user.
    """
    return TRANSITIONS.transition(state, trigger, lambda: _refusal(state, trigger))


def _refusal(state: ChildState, trigger: Trigger) -> str:
    possible = ", ".join(t for t in TRANSITIONS[state] if t in _ASKABLE)
    return f"cannot {trigger} what is {state}; possible now: {possible}"


_ASKABLE = frozenset({_T.START, _T.STOP, _T.RESTART, _T.PAUSE, _T.RESUME})


if __name__ == "__main__":
    print(TRANSITIONS.diagram())
