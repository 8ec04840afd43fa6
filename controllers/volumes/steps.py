"""The steps of a volume controller: one write or one event at a time. Pure."""

from __future__ import annotations

from dataclasses import dataclass

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
class UpdateClaim:
    """PUT the claim (metadata and spec)."""

    claim: core.PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class UpdateClaimStatus:
    """PUT the claim's status, then record the event."""

    claim: core.PersistentVolumeClaim
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class UpdateVolume:
    """PUT the volume (metadata and spec)."""

    volume: core.PersistentVolume


@dataclass(frozen=True, slots=True)
class UpdateVolumeStatus:
    """PUT the volume's status."""

    volume: core.PersistentVolume


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """DELETE the volume (reclaim policy Delete)."""

    volume: core.PersistentVolume


Step = UpdateClaim | UpdateClaimStatus | UpdateVolume | UpdateVolumeStatus | DeleteVolume | RecordEvent
