"""The states of a pod on its node, as a table that drives the pod worker.

`TRANSITIONS` maps a state and a trigger to the next state and to the steps that a sync takes then, in order.
What comes of a step may be the next trigger: the steps that were left are then replaced by those of the new
transition. A pair that is not in the table is a bug (`InvalidTransitionError`). The diagram in
docs/design/016-kubelet-core.md is printed from the table by `python -m nominee.kubelet.pods.states`.

Source: kubelet 1.36, podWorkers (SyncPod, SyncTerminatingPod, SyncTerminatedPod).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class PodState(StrEnum):
    """The state of a pod on the node."""

    NEW = "new"  # the node has not admitted it (yet)
    ADMITTED = "admitted"
    CREATED = "sandbox created"  # its containers have not started
    RUNNING = "running"
    TERMINATING = "terminating"  # its containers are being stopped
    TERMINATED = "terminated"  # its containers have stopped for good


class Trigger(StrEnum):
    """A cause of a transition."""

    ADMIT = "admitted by the node"
    SYNC = "sync"
    END = "deleted, rejected, preempted or out of time"
    SANDBOX_CREATED = "sandbox created"
    STARTED = "containers started"
    EXITED = "containers exited for good"
    STOPPED = "containers stopped"


class Step(StrEnum):
    """One step of a sync."""

    CHECK_DEADLINE = "check activeDeadlineSeconds"
    CREATE = "create the sandbox"
    PULL = "pull the images"
    START = "start the containers"
    RESTART = "restart crashed containers"
    PROBE = "probe the containers"
    EXIT = "end containers whose run is over"
    RESIZE = "actuate the allocated resources"
    DEBUG = "start new ephemeral containers"
    STOP = "stop the containers"
    RELEASE = "release the pod's resources"
    REPORT = "write the status"
    DELETE = "delete the pod from the API"


_S, _T, _P = PodState, Trigger, Step
_RUN: Final = (_P.RESTART, _P.PROBE, _P.EXIT, _P.RESIZE, _P.DEBUG, _P.REPORT)
_STOP: Final = Transition(_S.TERMINATING, (_P.STOP, _P.REPORT))
_GONE: Final = Transition(_S.TERMINATED, (_P.RELEASE, _P.REPORT, _P.DELETE))

TRANSITIONS: Final[StateTable[PodState, Trigger, Step]] = StateTable(
    {
        _S.NEW: {
            _T.ADMIT: Transition(_S.ADMITTED),
            _T.SYNC: Transition(_S.NEW),
            _T.END: _STOP,
        },
        _S.ADMITTED: {
            _T.SYNC: Transition(_S.ADMITTED, (_P.CHECK_DEADLINE, _P.CREATE)),
            _T.SANDBOX_CREATED: Transition(_S.CREATED, (_P.PULL, _P.START, _P.REPORT)),
            _T.END: _STOP,
        },
        _S.CREATED: {
            _T.SYNC: Transition(_S.CREATED, (_P.CHECK_DEADLINE, _P.PULL, _P.START, _P.REPORT)),
            _T.STARTED: Transition(_S.RUNNING, _RUN),
            _T.END: _STOP,
        },
        _S.RUNNING: {
            _T.SYNC: Transition(_S.RUNNING, (_P.CHECK_DEADLINE, *_RUN)),
            _T.EXITED: _GONE,
            _T.END: _STOP,
        },
        _S.TERMINATING: {
            _T.SYNC: _STOP,
            _T.STOPPED: _GONE,
        },
        _S.TERMINATED: {
            _T.SYNC: Transition(_S.TERMINATED, (_P.REPORT, _P.DELETE)),
        },
    },
    start=_S.NEW,
    style=DiagramStyle(loops="none"),
)

MAY_END: Final = frozenset(state for state, row in TRANSITIONS.items() if Trigger.END in row)


if __name__ == "__main__":
    print(TRANSITIONS.diagram())
