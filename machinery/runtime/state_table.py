"""State machines as tables: a state and a trigger give the next state and the effects of the transition.

    TRANSITIONS = StateTable({State.IDLE: {Trigger.START: Transition(State.BUSY, (Effect.RUN,))}, ...},
                             start=State.IDLE)
    TRANSITIONS.transition(state, trigger, lambda: f"{name}: no transition for {trigger}; {log}")

A pair that is not in the table raises InvalidTransitionError. The diagrams in docs/design are printed from
the tables (`python -m` of a table's module).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, TypeVar

S = TypeVar("S", bound=StrEnum)
T = TypeVar("T", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class InvalidTransitionError(Exception):
    """A trigger that a table does not allow in a state; the text has the transitions before."""


@dataclass(frozen=True, slots=True)
class Transition(Generic[S, E]):
    """The next state, and the actions of the transition, in order."""

    to: S
    effects: tuple[E, ...] = ()


def _lower_name(state: StrEnum) -> str:
    return state.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramStyle:
    """The parts of a table that its diagram shows."""

    identifier: Callable[[StrEnum], str] = _lower_name
    """Returns a state's identifier in the diagram."""
    names: bool = True
    """Whether each identifier is declared with the state's text."""
    loops: Literal["all", "with effects", "none"] = "all"
    """The transitions to the same state that are shown."""
    effects: bool = False
    """Whether a transition has its effects behind the trigger."""
    ends: bool = False
    """Whether a state without transitions leads to the end."""
    start_label: str = ""


class StateTable(dict[S, Mapping[T, Transition[S, E]]], Generic[S, T, E]):
    """The transitions of each state.

    Raises: ValueError where a transition leads to a state without a row.
    """

    def __init__(
        self,
        rows: Mapping[S, Mapping[T, Transition[S, E]]],
        *,
        start: S,
        style: DiagramStyle = DiagramStyle(),  # frozen
    ) -> None:
        super().__init__(rows)
        self.start = start
        self.style = style
        missing = {each.to for row in rows.values() for each in row.values()} - rows.keys()
        if missing:
            raise ValueError(f"no row of {', '.join(sorted(missing))}")

    def transition(self, state: S, trigger: T, problem: Callable[[], str]) -> Transition[S, E]:
        """Return the transition of a trigger in a state; `problem` returns the text of the error.

        Raises:
            InvalidTransitionError: the table does not allow the trigger in this state.
        """
        found = self[state].get(trigger)
        if found is None:
            raise InvalidTransitionError(problem())
        return found

    def diagram(self) -> str:
        """Return the table as a Mermaid state diagram."""
        return "\n".join(["stateDiagram-v2", *self.diagram_lines()])

    def diagram_lines(self, *, indent: str = "    ", prefix: str = "") -> list[str]:
        """Return the lines of a Mermaid state diagram; `prefix` is before each identifier."""
        style = self.style
        ids = {state: f"{prefix}{style.identifier(state)}" for state in self}
        lines = [f"{indent}{ids[state]} : {state}" for state in self] if style.names else []
        label = f": {style.start_label}" if style.start_label else ""
        lines.append(f"{indent}[*] --> {ids[self.start]}{label}")
        for state, row in self.items():
            for trigger, each in row.items():
                if each.to is not state or style.loops == "all" or (style.loops != "none" and each.effects):
                    done = f" / {', '.join(each.effects)}" if style.effects and each.effects else ""
                    lines.append(f"{indent}{ids[state]} --> {ids[each.to]}: {trigger}{done}")
            if style.ends and not row:
                lines.append(f"{indent}{ids[state]} --> [*]")
        return lines
