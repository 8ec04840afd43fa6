"""The states of the calls for one pod, as a table that drives them.

`TRANSITIONS` maps a state and a trigger to the next state and to the effects that `CallQueue` performs then,
in order. A pair that is not in the table is a bug and raises InvalidTransitionError. `python -m
nominee.scheduler.dispatch.states` prints the diagram in docs/design/004-scheduler.md.

Invariants:
- At most one call for a pod is under way, and at most one waits.
- A call that is decided while another one waits replaces it and keeps its place in line; a nomination or a
  condition that it leaves alone is taken over from the one that waited.
- A call is in line exactly while it waits and none of its pod is under way.

Source: kube-scheduler 1.36, API dispatcher's call queue (KEP-5229).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class CallState(StrEnum):
    """The calls that exist for a pod."""

    NONE = "no call"
    WAITING = "a call waits"
    UNDER_WAY = "a call is under way"
    FOLLOWED = "a call is under way, a later one waits"


class Trigger(StrEnum):
    """A cause of a transition."""

    DECIDED = "a write is decided"
    TAKEN = "the loop takes it"
    WRITTEN = "written"  # or there was nothing to change
    FAILED = "failed"
    UNREACHABLE = "the API server is unavailable"
    DELETED = "the pod is deleted"


class Effect(StrEnum):
    """The work of a transition."""

    KEEP = "keep the call, and merge the one that waits into it"
    LINE_UP = "put the call that waits in line"
    BEGIN = "hand the call to the loop"
    RETURN = "let the call wait again, merged into the later one"
    REPORT = "report that the call failed"
    SETTLE = "end the call; compare its nomination with the watch"
    DROP = "drop the call that waits"
    FORGET = "forget the nomination"
    RELEASE = "let those go on that wait for the pod's calls"


_S, _T, _E = CallState, Trigger, Effect
# Its outcome is unknown. Writing it once more is safe: each call is compared with the newest state.
_AGAIN: Final = Transition(_S.WAITING, (_E.RETURN, _E.LINE_UP))

TRANSITIONS: Final[StateTable[CallState, Trigger, Effect]] = StateTable(
    {
        _S.NONE: {
            _T.DECIDED: Transition(_S.WAITING, (_E.KEEP, _E.LINE_UP)),
            _T.DELETED: Transition(_S.NONE, (_E.FORGET,)),
        },
        _S.WAITING: {
            _T.DECIDED: Transition(_S.WAITING, (_E.KEEP,)),
            _T.TAKEN: Transition(_S.UNDER_WAY, (_E.BEGIN,)),
            _T.DELETED: Transition(_S.NONE, (_E.DROP, _E.FORGET, _E.RELEASE)),
        },
        _S.UNDER_WAY: {
            _T.DECIDED: Transition(_S.FOLLOWED, (_E.KEEP,)),
            _T.WRITTEN: Transition(_S.NONE, (_E.SETTLE, _E.RELEASE)),
            _T.FAILED: Transition(_S.NONE, (_E.REPORT, _E.SETTLE, _E.RELEASE)),
            _T.UNREACHABLE: _AGAIN,
            _T.DELETED: Transition(_S.UNDER_WAY, (_E.FORGET,)),
        },
        _S.FOLLOWED: {
            _T.DECIDED: Transition(_S.FOLLOWED, (_E.KEEP,)),
            _T.WRITTEN: Transition(_S.WAITING, (_E.SETTLE, _E.LINE_UP)),
            _T.FAILED: Transition(_S.WAITING, (_E.REPORT, _E.SETTLE, _E.LINE_UP)),
            _T.UNREACHABLE: _AGAIN,
            _T.DELETED: Transition(_S.UNDER_WAY, (_E.DROP, _E.FORGET)),
        },
    },
    start=_S.NONE,
    style=DiagramStyle(loops="none"),
)


if __name__ == "__main__":
    print(TRANSITIONS.diagram())
