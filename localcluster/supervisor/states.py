"""The states of a supervised process, as a table.

A pair of state and trigger that is not in `TRANSITIONS` is an error (`InvalidTransitionError`). The diagram
in the docs is printed from the table by `python -m nominee.localcluster.supervisor.states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The state of a process."""

    DOWN = "down"  # not wanted
    STARTING = "starting"  # spawned (or resumed), not yet seen ready
    READY = "ready"
    PAUSED = "paused"  # stopped by SIGSTOP
    STOPPING = "stopping"  # asked to end, stays down afterwards
    RESTARTING = "restarting"  # asked to end, comes back
    BACKOFF = "backoff"  # crashed, waits to be started again
    CRASHED = "crashed"  # crashed and is left down


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


@dataclass(frozen=True, slots=True)
class Step:
    """A transition's next state, and its effects in order."""

    to: State
    effects: tuple[Effect, ...] = ()


class InvalidTransitionError(Exception):
    """A trigger that is not possible in this state."""


_S, _T, _E = State, Trigger, Effect

_ALIVE: Mapping[Trigger, Step] = {
    _T.START: Step(_S.STARTING),
    _T.STOP: Step(_S.STOPPING, (_E.TERM,)),
    _T.KILL: Step(_S.STOPPING, (_E.KILL,)),
    _T.RESTART: Step(_S.RESTARTING, (_E.TERM,)),
    _T.RESTART_KILL: Step(_S.RESTARTING, (_E.KILL,)),
    _T.PAUSE: Step(_S.PAUSED, (_E.STOP,)),
    _T.DIED: Step(_S.BACKOFF),
    _T.DIED_FOR_GOOD: Step(_S.CRASHED),
}
_NOT_RUNNING: Mapping[Trigger, Step] = {
    _T.START: Step(_S.STARTING, (_E.SPAWN,)),
    _T.RESTART: Step(_S.STARTING, (_E.SPAWN,)),
    _T.RESTART_KILL: Step(_S.STARTING, (_E.SPAWN,)),
    _T.STOP: Step(_S.DOWN),
    _T.KILL: Step(_S.DOWN),
}

TRANSITIONS: Mapping[State, Mapping[Trigger, Step]] = {
    _S.DOWN: _NOT_RUNNING,
    _S.CRASHED: _NOT_RUNNING,
    _S.BACKOFF: {**_NOT_RUNNING, _T.DEADLINE: Step(_S.STARTING, (_E.SPAWN,))},
    _S.STARTING: {**_ALIVE, _T.BECAME_READY: Step(_S.READY)},
    _S.READY: {
        **_ALIVE,
        _T.START: Step(_S.READY),
        _T.BECAME_READY: Step(_S.READY),
        _T.RESUME: Step(_S.READY),
    },
    # A stopped process receives SIGTERM only after SIGCONT; SIGKILL needs none.
    _S.PAUSED: {
        _T.RESUME: Step(_S.STARTING, (_E.CONT,)),
        _T.PAUSE: Step(_S.PAUSED),
        _T.STOP: Step(_S.STOPPING, (_E.TERM, _E.CONT)),
        _T.KILL: Step(_S.STOPPING, (_E.KILL,)),
        _T.RESTART: Step(_S.RESTARTING, (_E.TERM, _E.CONT)),
        _T.RESTART_KILL: Step(_S.RESTARTING, (_E.KILL,)),
        _T.DIED: Step(_S.BACKOFF),
        _T.DIED_FOR_GOOD: Step(_S.CRASHED),
    },
    _S.STOPPING: {
        _T.STOP: Step(_S.STOPPING),
        _T.KILL: Step(_S.STOPPING, (_E.KILL,)),
        _T.START: Step(_S.RESTARTING),
        _T.RESTART: Step(_S.RESTARTING),
        _T.RESTART_KILL: Step(_S.RESTARTING, (_E.KILL,)),
        _T.DIED: Step(_S.DOWN),
        _T.DIED_FOR_GOOD: Step(_S.DOWN),
        _T.DEADLINE: Step(_S.STOPPING, (_E.KILL,)),
    },
    _S.RESTARTING: {
        _T.STOP: Step(_S.STOPPING),
        _T.KILL: Step(_S.STOPPING, (_E.KILL,)),
        _T.START: Step(_S.RESTARTING),
        _T.RESTART: Step(_S.RESTARTING),
        _T.RESTART_KILL: Step(_S.RESTARTING, (_E.KILL,)),
        _T.DIED: Step(_S.STARTING, (_E.SPAWN,)),
        _T.DIED_FOR_GOOD: Step(_S.STARTING, (_E.SPAWN,)),
        _T.DEADLINE: Step(_S.RESTARTING, (_E.KILL,)),
    },
}

RUNNING = frozenset({State.STARTING, State.READY, State.PAUSED, State.STOPPING, State.RESTARTING})
"""States in which a process exists."""


def step(state: State, trigger: Trigger) -> Step:
    """Return the transition.

    Raises:
        InvalidTransitionError: it is not in the table; the message is for the user.
    """
    found = TRANSITIONS[state].get(trigger)
    if found is None:
        possible = ", ".join(t for t in TRANSITIONS[state] if t in _ASKABLE)
        raise InvalidTransitionError(f"cannot {trigger} what is {state}; possible now: {possible}")
    return found


_ASKABLE = frozenset({_T.START, _T.STOP, _T.RESTART, _T.PAUSE, _T.RESUME})


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> starting: start"]
    for state, row in TRANSITIONS.items():
        for trigger, to in row.items():
            if to.to is not state or to.effects:
                effects = f" / {', '.join(to.effects)}" if to.effects else ""
                lines.append(f"    {state} --> {to.to}: {trigger}{effects}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(diagram())
