"""The states of a pod's resize, as two tables that drive it.

A resize has two conditions that exist side by side, since a newer request may wait while an older one is
being actuated: PodResizePending (`PENDING`) and PodResizeInProgress (`IN_PROGRESS`). Each table maps a state
and a trigger to the next state and to the effects that make it so. A trigger concerns the tables that name it
anywhere; where such a table does not name it for the present state that is a bug (`InvalidTransitionError`).
The diagram in docs/design/016-kubelet-core.md is printed from them by `python -m
nominee.kubelet.resize.states`.

Source: kubelet 1.36, allocation and status managers; KEP-1287, "Resize status".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class Pending(StrEnum):
    """The state of PodResizePending."""

    NONE = "no resize pending"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"


class Progress(StrEnum):
    """The state of PodResizeInProgress."""

    NONE = "no resize in progress"
    IN_PROGRESS = "InProgress"
    ERROR = "Error"


class Trigger(StrEnum):
    """A cause of a transition."""

    DEFER = "does not fit now"
    REFUSE = "is infeasible on this node"
    ALLOCATE = "allocated"
    REVERT = "desired resources are those allocated"
    DIFFER = "actuated resources differ from those allocated"
    ACTUATE = "actuated"
    FAIL = "actuation failed"
    TERMINATE = "pod terminated"
    READ_DEFERRED = "read from the status: Deferred"
    READ_INFEASIBLE = "read from the status: Infeasible"
    READ_IN_PROGRESS = "read from the status: InProgress"
    READ_ERROR = "read from the status: Error"


class Effect(StrEnum):
    """One effect of a transition."""

    SET_PENDING = "set PodResizePending"
    CLEAR_PENDING = "remove PodResizePending"
    RECORD_PENDING = "record ResizeDeferred or ResizeInfeasible, if that is new"
    START = "set PodResizeInProgress for the allocated generation"
    SET_IN_PROGRESS = "set PodResizeInProgress, keep what it says"
    SET_ERROR = "set PodResizeInProgress to Error"
    CLEAR_IN_PROGRESS = "remove PodResizeInProgress"
    RECORD_STARTED = "record ResizeStarted"
    RECORD_COMPLETED = "record ResizeCompleted"
    RECORD_ERROR = "record ResizeError, if that is new"


_N, _P, _T, _E = Pending, Progress, Trigger, Effect

_DEFER: Final = Transition(_N.DEFERRED, (_E.RECORD_PENDING, _E.SET_PENDING))
_REFUSE: Final = Transition(_N.INFEASIBLE, (_E.RECORD_PENDING, _E.SET_PENDING))
_CLEAR: Final = Transition(_N.NONE, (_E.CLEAR_PENDING,))
_STAY: Final[Transition[Pending, Effect]] = Transition(_N.NONE)
_WAITING: Final[Mapping[Trigger, Transition[Pending, Effect]]] = {
    _T.DEFER: _DEFER,
    _T.REFUSE: _REFUSE,
    _T.ALLOCATE: _CLEAR,
    _T.REVERT: _CLEAR,
    _T.TERMINATE: _CLEAR,
}

_STYLE: Final = DiagramStyle(loops="none")

PENDING: Final[StateTable[Pending, Trigger, Effect]] = StateTable(
    {
        _N.NONE: {
            _T.DEFER: _DEFER,
            _T.REFUSE: _REFUSE,
            _T.ALLOCATE: _STAY,
            _T.REVERT: _STAY,
            _T.TERMINATE: _STAY,
            _T.READ_DEFERRED: Transition(_N.DEFERRED, (_E.SET_PENDING,)),
            _T.READ_INFEASIBLE: Transition(_N.INFEASIBLE, (_E.SET_PENDING,)),
        },
        _N.DEFERRED: _WAITING,
        _N.INFEASIBLE: _WAITING,
    },
    start=_N.NONE,
    style=_STYLE,
)

_START: Final = Transition(_P.IN_PROGRESS, (_E.START, _E.RECORD_STARTED))
_FAIL: Final = Transition(_P.ERROR, (_E.RECORD_ERROR, _E.SET_ERROR))
_DONE: Final = Transition(_P.NONE, (_E.RECORD_COMPLETED, _E.CLEAR_IN_PROGRESS))
_END: Final = Transition(_P.NONE, (_E.CLEAR_IN_PROGRESS,))

IN_PROGRESS: Final[StateTable[Progress, Trigger, Effect]] = StateTable(
    {
        _P.NONE: {
            _T.ALLOCATE: _START,
            _T.DIFFER: Transition(_P.IN_PROGRESS, (_E.SET_IN_PROGRESS,)),
            _T.ACTUATE: Transition(_P.NONE),
            _T.FAIL: _FAIL,
            _T.TERMINATE: Transition(_P.NONE),
            _T.READ_IN_PROGRESS: Transition(_P.IN_PROGRESS, (_E.SET_IN_PROGRESS,)),
            _T.READ_ERROR: Transition(_P.ERROR, (_E.SET_ERROR,)),
        },
        _P.IN_PROGRESS: {
            _T.ALLOCATE: _START,
            _T.DIFFER: Transition(_P.IN_PROGRESS, (_E.SET_IN_PROGRESS,)),
            _T.ACTUATE: _DONE,
            _T.FAIL: _FAIL,
            _T.TERMINATE: _END,
        },
        _P.ERROR: {
            _T.ALLOCATE: _START,
            _T.DIFFER: Transition(_P.ERROR, (_E.SET_IN_PROGRESS,)),
            _T.ACTUATE: _DONE,
            _T.FAIL: _FAIL,
            _T.TERMINATE: _END,
        },
    },
    start=_P.NONE,
    style=_STYLE,
)

PENDING_TRIGGERS: Final = frozenset(trigger for row in PENDING.values() for trigger in row)
PROGRESS_TRIGGERS: Final = frozenset(trigger for row in IN_PROGRESS.values() for trigger in row)


def resize_diagram() -> str:
    """Return both tables as one Mermaid state diagram with two concurrent regions."""
    indent = " " * 8
    return "\n".join(
        [
            "stateDiagram-v2",
            "    state Resize {",
            *PENDING.diagram_lines(indent=indent, prefix="pending_"),
            f"{indent}--",
            *IN_PROGRESS.diagram_lines(indent=indent, prefix="progress_"),
            "    }",
        ]
    )


if __name__ == "__main__":
    print(resize_diagram())
