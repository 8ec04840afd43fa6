"""The engine of state tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pytest

from nominee.machinery.runtime.state_table import (
    DiagramStyle,
    InvalidTransitionError,
    StateTable,
    Transition,
)


class State(StrEnum):
    IDLE = "nothing to do"
    BUSY = "at work"
    DONE = "done"


class Trigger(StrEnum):
    START = "started"
    END = "ended"


class Effect(StrEnum):
    RUN = "run"


ROWS: Mapping[State, Mapping[Trigger, Transition[State, Effect]]] = {
    State.IDLE: {
        Trigger.START: Transition(State.BUSY, (Effect.RUN,)),
        Trigger.END: Transition(State.IDLE),
    },
    State.BUSY: {
        Trigger.START: Transition(State.BUSY, (Effect.RUN,)),
        Trigger.END: Transition(State.DONE),
    },
    State.DONE: {},
}


def test_a_transition_has_the_next_state_and_the_effects() -> None:
    table = StateTable(ROWS, start=State.IDLE)
    assert table.transition(State.IDLE, Trigger.START, str) == Transition(State.BUSY, (Effect.RUN,))


def test_what_the_table_does_not_have_is_an_error_with_the_callers_text() -> None:
    table = StateTable(ROWS, start=State.IDLE)
    with pytest.raises(InvalidTransitionError, match=r"^the log$"):
        table.transition(State.DONE, Trigger.START, lambda: "the log")


def test_every_state_has_a_row() -> None:
    with pytest.raises(ValueError, match="no row of at work"):
        StateTable({State.IDLE: ROWS[State.IDLE]}, start=State.IDLE)


@pytest.mark.parametrize(
    ("style", "lines"),
    [
        (
            DiagramStyle(),
            [
                *("idle : nothing to do", "busy : at work", "done : done", "[*] --> idle"),
                *("idle --> busy: started", "idle --> idle: ended"),
                *("busy --> busy: started", "busy --> done: ended"),
            ],
        ),
        (
            DiagramStyle(names=False, loops="with effects", effects=True, ends=True, start_label="boot"),
            [
                *("[*] --> idle: boot", "idle --> busy: started / run"),
                *("busy --> busy: started / run", "busy --> done: ended", "done --> [*]"),
            ],
        ),
        (
            DiagramStyle(identifier=lambda state: state.name, names=False, loops="none"),
            ["[*] --> IDLE", "IDLE --> BUSY: started", "BUSY --> DONE: ended"],
        ),
    ],
)
def test_the_diagram_is_the_tables(style: DiagramStyle, lines: list[str]) -> None:
    table = StateTable(ROWS, start=State.IDLE, style=style)
    assert table.diagram() == "\n".join(["stateDiagram-v2", *(f"    {line}" for line in lines)])
