"""What a loop wants people to know: events, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from machinery.pb import core

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Told:
    """One event. `about` None is the autoscaler itself (its status ConfigMap)."""

    type: EventType
    reason: str
    about: core.Pod | core.Node | None
    message: str


class Events(list[Told]):
    """Events in the order in which they were told."""

    def status(self, type_: EventType, reason: str, message: str) -> None:
        self.append(Told(type_, reason, None, message))

    def about(self, obj: core.Pod | core.Node, type_: EventType, reason: str, message: str) -> None:
        self.append(Told(type_, reason, obj, message))
