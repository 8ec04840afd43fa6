"""The steps of a volume controller: one write or one event at a time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nominee.machinery.api.pb import core


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record an event about a claim or volume, then reconcile it again after `again_seconds` (0: never)."""

    regarding: core.PersistentVolumeClaim | core.PersistentVolume
    type: str
    reason: str
    note: str
    again_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Update:
    """PUT a claim or a volume (metadata and spec), or its status; then record the event."""

    obj: core.PersistentVolumeClaim | core.PersistentVolume
    subresource: Literal["", "status"] = ""
    event: RecordEvent | None = None

    def __str__(self) -> str:
        kind = "Claim" if isinstance(self.obj, core.PersistentVolumeClaim) else "Volume"
        return f"Update{kind}{self.subresource.title()}"


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """DELETE the volume (reclaim policy Delete)."""

    volume: core.PersistentVolume

    def __str__(self) -> str:
        return "DeleteVolume"


Step = Update | DeleteVolume | RecordEvent
