"""What the state tables of the kubelet share: transitions, and the error for one that is not in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

LOG_LENGTH_MAX: Final = 16

S = TypeVar("S", bound=StrEnum)
T = TypeVar("T", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S, E]):
    """The next state, and what is done on the way, in order."""

    to: S
    effects: tuple[E, ...] = ()


Table = Mapping[S, Mapping[T, Transition[S, E]]]


class UnknownTransitionError(Exception):
    """A trigger that a table does not allow in a state; the text has the pod's transition log."""

    def __init__(self, pod: object, state: StrEnum, trigger: StrEnum, log: Sequence[str]) -> None:
        before = "; ".join(log) or "no transition"
        super().__init__(f'pod {pod}: no transition from "{state}" for "{trigger}"; before: {before}')


def append(log: list[str] | None, entry: str) -> list[str]:
    """Return the transition log with one more entry, its last LOG_LENGTH_MAX ones."""
    return [entry] if log is None else [*log[-LOG_LENGTH_MAX + 1 :], entry]


def diagram(table: Table[S, T, E], *, start: S, indent: str = "    ", prefix: str = "") -> list[str]:
    """Return the lines of a Mermaid state diagram, without transitions that stay in their state."""
    ids = {state: f"{prefix}{state.name.lower()}" for state in table}
    lines = [f"{indent}{ids[state]} : {state}" for state in table]
    lines.append(f"{indent}[*] --> {ids[start]}")
    for state, row in table.items():
        lines += [
            f"{indent}{ids[state]} --> {ids[each.to]}: {trigger}"
            for trigger, each in row.items()
            if each.to is not state
        ]
    return lines
