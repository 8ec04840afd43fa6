"""The table of checkers, in the order of reports."""

from __future__ import annotations

from nominee.invariants.acknowledged_writes import AcknowledgedWrites
from nominee.invariants.checker import Checker
from nominee.invariants.pod_binding import PodBinding
from nominee.invariants.resource_versions import ResourceVersions

CHECKERS: tuple[type[Checker], ...] = (
    PodBinding,
    ResourceVersions,
    AcknowledgedWrites,
)
"""Every invariant; names are unique."""
