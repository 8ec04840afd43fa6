"""The table of checkers, in the order of reports."""

from __future__ import annotations

from nominee.invariants.acknowledged_writes import AcknowledgedWrites
from nominee.invariants.allocations import Allocations
from nominee.invariants.checker import Checker
from nominee.invariants.checkpoints import Checkpoints
from nominee.invariants.deferred_resizes import DeferredResizes
from nominee.invariants.leader_leases import LeaderLeases
from nominee.invariants.node_deletion import NodeDeletion
from nominee.invariants.nominations import Nominations
from nominee.invariants.pod_binding import PodBinding
from nominee.invariants.pod_termination import PodTermination
from nominee.invariants.redundant_victims import RedundantVictims
from nominee.invariants.resource_versions import ResourceVersions
from nominee.invariants.victim_priority import VictimPriority

CHECKERS: tuple[type[Checker], ...] = (
    PodBinding,
    Allocations,
    ResourceVersions,
    AcknowledgedWrites,
    Nominations,
    VictimPriority,
    RedundantVictims,
    NodeDeletion,
    DeferredResizes,
    Checkpoints,
    PodTermination,
    LeaderLeases,
)
"""Every invariant; names are unique."""
