"""Kubernetes Events of the autoscaler, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nominee.machinery.api.pb import core

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Event:
    """An Event about an object; about the status ConfigMap if `about` is None."""

    type: EventType
    reason: str
    about: core.Pod | core.Node | None
    message: str


class Events(list[Event]):
    """Events in the order in which they happened."""

    def status(self, type_: EventType, reason: str, message: str) -> None:
        """Add an event about the status ConfigMap."""
        self.append(Event(type_, reason, None, message))

    def about(self, obj: core.Pod | core.Node, type_: EventType, reason: str, message: str) -> None:
        """Add an event about an object."""
        self.append(Event(type_, reason, obj, message))
