"""States of the deletion of a node, as a table that drives it. Pure.

`TRANSITIONS` maps a state and an event to the next state and to the effects of the transition, in order; the
last effect leads to the next event. A pair that is not in the table is a bug (`InvalidTransitionError`). The
diagram in docs/design/005-autoscaler.md is printed by `python -m
nominee.autoscaler.actuation.deletion_states`.

Source: cluster-autoscaler 1.36, core/scaledown/actuation.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from nominee.machinery.runtime.state_table import DiagramStyle, StateTable, Transition


class DeletionState(StrEnum):
    """State of a deletion."""

    TAINTED = "tainted"
    RECHECKING = "rechecking"
    EVICTING = "evicting pods"
    TERMINATING = "pods terminating"
    DELAYED = "delayed by annotation"
    DELETING = "deleting"
    DELETED = "deleted"
    FAILED = "failed"


class DeletionEvent(StrEnum):
    """An event of a deletion."""

    STARTED = "started"
    CONFIRMED = "the node may still be deleted"
    EVICTED = "all pods evicted"
    PODS_REMAIN = "some pods remain"
    PODS_GONE = "no evicted pod remains"
    HELD = "the node has the annotation"
    NOT_HELD = "no annotation, or timeout"
    DELETED = "the provider has deleted the node"
    FAILED = "failed"


class Effect(StrEnum):
    """An action on a transition."""

    WAIT_AFTER_TAINT = "wait --node-delete-delay-after-taint"
    RECHECK = "read and check the node"
    EVICT = "evict pods"
    POLL = "wait the poll interval"
    CHECK_PODS = "read the evicted pods"
    CHECK_ANNOTATION = "read the delay-deletion annotation"
    DELETE = "delete the node"
    REPORT_DELETED = "record the deletion"
    UNTAINT = "remove the taint"
    REPORT_FAILED = "record the failure"


_S, _E, _F = DeletionState, DeletionEvent, Effect
_FAIL: Final = Transition(_S.FAILED, (_F.UNTAINT, _F.REPORT_FAILED))

TRANSITIONS: Final[StateTable[DeletionState, DeletionEvent, Effect]] = StateTable(
    {
        _S.TAINTED: {_E.STARTED: Transition(_S.RECHECKING, (_F.WAIT_AFTER_TAINT, _F.RECHECK))},
        _S.RECHECKING: {_E.CONFIRMED: Transition(_S.EVICTING, (_F.EVICT,)), _E.FAILED: _FAIL},
        _S.EVICTING: {_E.EVICTED: Transition(_S.TERMINATING, (_F.CHECK_PODS,)), _E.FAILED: _FAIL},
        _S.TERMINATING: {
            _E.PODS_REMAIN: Transition(_S.TERMINATING, (_F.POLL, _F.CHECK_PODS)),
            _E.PODS_GONE: Transition(_S.DELAYED, (_F.CHECK_ANNOTATION,)),
            _E.FAILED: _FAIL,
        },
        _S.DELAYED: {
            _E.HELD: Transition(_S.DELAYED, (_F.POLL, _F.CHECK_ANNOTATION)),
            _E.NOT_HELD: Transition(_S.DELETING, (_F.DELETE,)),
        },
        _S.DELETING: {_E.DELETED: Transition(_S.DELETED, (_F.REPORT_DELETED,)), _E.FAILED: _FAIL},
        _S.DELETED: {},
        _S.FAILED: {},
    },
    start=_S.TAINTED,
    style=DiagramStyle(identifier=lambda state: state.name, names=False),
)


def transition_of(
    state: DeletionState, event: DeletionEvent, log: tuple[DeletionEvent, ...]
) -> Transition[DeletionState, Effect]:
    """Return the transition of an event; `log` are the events before it.

    Raises:
        InvalidTransitionError: the table has none.
    """
    return TRANSITIONS.transition(
        state, event, lambda: f"event {event!s} in state {state!s}; events before: {', '.join(map(str, log))}"
    )


if __name__ == "__main__":
    print(TRANSITIONS.diagram())
