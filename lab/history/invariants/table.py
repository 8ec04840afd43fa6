"""The table of checkers, in the order of reports."""

from __future__ import annotations

from nominee.lab.history.invariants.acknowledged_writes import AcknowledgedWrites
from nominee.lab.history.invariants.budgets import Budgets
from nominee.lab.history.invariants.checking.checker import Checker
from nominee.lab.history.invariants.daemon_pods import DaemonPods
from nominee.lab.history.invariants.device_claims import DeviceClaims
from nominee.lab.history.invariants.job_counts import JobCounts
from nominee.lab.history.invariants.leader_leases import LeaderLeases
from nominee.lab.history.invariants.leader_writes import LeaderWrites
from nominee.lab.history.invariants.namespaces import Namespaces
from nominee.lab.history.invariants.needed_pods import NeededPods
from nominee.lab.history.invariants.node_deletion import NodeDeletion
from nominee.lab.history.invariants.node_draining import NodeDraining
from nominee.lab.history.invariants.node_groups import NodeGroups
from nominee.lab.history.invariants.object_metadata import ObjectMetadata
from nominee.lab.history.invariants.ordinals import Ordinals
from nominee.lab.history.invariants.pod_rules.allocations import Allocations
from nominee.lab.history.invariants.pod_rules.checkpoints import Checkpoints
from nominee.lab.history.invariants.pod_rules.deferred_resizes import DeferredResizes
from nominee.lab.history.invariants.pod_rules.granted_resizes import GrantedResizes
from nominee.lab.history.invariants.pod_rules.late_rejections import LateRejections
from nominee.lab.history.invariants.pod_rules.pod_binding import PodBinding
from nominee.lab.history.invariants.pod_rules.pod_progress import PodProgress
from nominee.lab.history.invariants.pod_rules.pod_termination import PodTermination
from nominee.lab.history.invariants.preemption.nominations import Nominations
from nominee.lab.history.invariants.preemption.redundant_victims import RedundantVictims
from nominee.lab.history.invariants.preemption.victim_priority import VictimPriority
from nominee.lab.history.invariants.protected_claims import ProtectedClaims
from nominee.lab.history.invariants.replicas import Replicas
from nominee.lab.history.invariants.resource_versions import ResourceVersions
from nominee.lab.history.invariants.retries import Retries
from nominee.lab.history.invariants.sound_bindings import SoundBindings
from nominee.lab.history.invariants.true_answers import TrueAnswers
from nominee.lab.history.invariants.unexpected_errors import UnexpectedErrors
from nominee.lab.history.invariants.unique_ordinals import UniqueOrdinals
from nominee.lab.history.invariants.unneeded_nodes import UnneededNodes
from nominee.lab.history.invariants.whole_reads import WholeReads

CHECKERS: tuple[type[Checker], ...] = (
    PodBinding,
    SoundBindings,
    PodProgress,
    LateRejections,
    Allocations,
    DeviceClaims,
    ProtectedClaims,
    Budgets,
    Replicas,
    DaemonPods,
    NeededPods,
    Ordinals,
    UniqueOrdinals,
    JobCounts,
    ObjectMetadata,
    ResourceVersions,
    AcknowledgedWrites,
    TrueAnswers,
    WholeReads,
    Nominations,
    VictimPriority,
    RedundantVictims,
    NodeDeletion,
    NodeDraining,
    NodeGroups,
    UnneededNodes,
    DeferredResizes,
    GrantedResizes,
    Checkpoints,
    PodTermination,
    LeaderLeases,
    LeaderWrites,
    Namespaces,
    Retries,
    UnexpectedErrors,
)
"""Every invariant; names are unique."""
