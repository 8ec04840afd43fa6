"""The table of checkers, in the order of reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker
from nominee.lab.history.invariants.claims.device_claims import DeviceClaims
from nominee.lab.history.invariants.claims.protected_claims import ProtectedClaims
from nominee.lab.history.invariants.objects.acknowledged_writes import AcknowledgedWrites
from nominee.lab.history.invariants.objects.condition_times import ConditionTimes
from nominee.lab.history.invariants.objects.namespaces import Namespaces
from nominee.lab.history.invariants.objects.object_metadata import ObjectMetadata
from nominee.lab.history.invariants.objects.resource_versions import ResourceVersions
from nominee.lab.history.invariants.objects.true_answers import TrueAnswers
from nominee.lab.history.invariants.objects.whole_reads import WholeReads
from nominee.lab.history.invariants.pod_rules.allocations import Allocations
from nominee.lab.history.invariants.pod_rules.checkpoints import Checkpoints
from nominee.lab.history.invariants.pod_rules.deferred_resizes import DeferredResizes
from nominee.lab.history.invariants.pod_rules.grace_periods import GracePeriods
from nominee.lab.history.invariants.pod_rules.granted_resizes import GrantedResizes
from nominee.lab.history.invariants.pod_rules.late_rejections import LateRejections
from nominee.lab.history.invariants.pod_rules.pod_binding import PodBinding
from nominee.lab.history.invariants.pod_rules.pod_progress import PodProgress
from nominee.lab.history.invariants.pod_rules.pod_termination import PodTermination
from nominee.lab.history.invariants.pod_rules.sound_bindings import SoundBindings
from nominee.lab.history.invariants.preemption.nominations import Nominations
from nominee.lab.history.invariants.preemption.redundant_victims import RedundantVictims
from nominee.lab.history.invariants.preemption.victim_priority import VictimPriority
from nominee.lab.history.invariants.processes.leader_leases import LeaderLeases
from nominee.lab.history.invariants.processes.leader_writes import LeaderWrites
from nominee.lab.history.invariants.processes.retries import Retries
from nominee.lab.history.invariants.processes.unexpected_errors import UnexpectedErrors
from nominee.lab.history.invariants.scaling.node_deletion import NodeDeletion
from nominee.lab.history.invariants.scaling.node_draining import NodeDraining
from nominee.lab.history.invariants.scaling.node_groups import NodeGroups
from nominee.lab.history.invariants.scaling.unneeded_nodes import UnneededNodes
from nominee.lab.history.invariants.workloads.budgets import Budgets
from nominee.lab.history.invariants.workloads.daemon_pods import DaemonPods
from nominee.lab.history.invariants.workloads.job_counts import JobCounts
from nominee.lab.history.invariants.workloads.needed_pods import NeededPods
from nominee.lab.history.invariants.workloads.ordinals import Ordinals
from nominee.lab.history.invariants.workloads.replicas import Replicas
from nominee.lab.history.invariants.workloads.unique_ordinals import UniqueOrdinals

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
    ConditionTimes,
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
    GracePeriods,
    LeaderLeases,
    LeaderWrites,
    Namespaces,
    Retries,
    UnexpectedErrors,
)
"""Every invariant; names are unique."""
OF_NOW: Final = frozenset({Checkpoints.about.name, DeferredResizes.about.name})
"""They compare the history with what a running process shows at another moment."""
OF_REPORTS: Final = frozenset({
    Allocations.about.name,
    LateRejections.about.name,
    PodTermination.about.name,
})  # fmt: skip
"""Whether they hold may only be known when a kubelet has reported the end of a pod."""
OF_VIEWS: Final[Mapping[str, frozenset[str]]] = {
    SoundBindings.about.name: frozenset({"scheduler", "controllers"}),
    DeviceClaims.about.name: frozenset({"controllers"}),
    PodProgress.about.name: frozenset({"scheduler"}),
    LateRejections.about.name: frozenset({"scheduler", "kubelet"}),
    Budgets.about.name: frozenset({"controllers"}),
    NodeDraining.about.name: frozenset({"autoscaler"}),
    UnneededNodes.about.name: frozenset({"autoscaler"}),
}
"""Those that allow for some seconds in which these components may not have seen a change, and for no more."""
