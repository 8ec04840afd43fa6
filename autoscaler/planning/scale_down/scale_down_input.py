"""The input of scale-down planning in one loop, and the nodes that it proposes to remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nominee.autoscaler.planning.objects.observation import CloudView, Observation
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.scale_down.utilization import Utilization
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownInput:
    """The cluster in this loop."""

    snapshot: ClusterSnapshot
    observation: Observation
    view: CloudView
    deletions: NodeDeletionTracker
    """Deletions in progress before the provider was asked for sizes: one that ends in between then counts
    twice, instead of not at all."""
    nodes: Sequence[core.Node]
    """Registered nodes without upcoming ones."""
    binding: frozenset[str] = frozenset()
    """UIDs of nominated pods that block the removal of their node (`fixed` only)."""
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeToBeRemoved:
    """A node whose pods fit elsewhere. `is_risky`: budgets forbid to evict all its pods at once."""

    node: core.Node
    utilization: Utilization
    pods_to_reschedule: tuple[core.Pod, ...]
    is_risky: bool = False
    on_completion: bool = False
    """One of its pods must complete before its eviction."""
