"""Events that a core asks its shell to record. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An Event that a shell records about the object that the core names beside it."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"
