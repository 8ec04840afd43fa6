"""The values that the steps of one loop share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.pods import PodsBySchedulability
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.planning.snapshot.template_node import TemplateNode
from nominee.autoscaler.result import LoopResult
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class LoopContext:
    """The observed cluster, and the results of the steps so far."""

    observation: Observation
    deletions: NodeDeletionTracker
    """Deletions in progress before the provider was asked for sizes."""
    pods: PodsBySchedulability
    snapshot: ClusterSnapshot
    templates: Mapping[str, TemplateNode]
    """Template nodes by group."""
    nodes: list[core.Node]
    """Registered nodes by name; without upcoming ones after the step add_upcoming_nodes."""
    ready: list[core.Node]
    result: LoopResult
    binding: frozenset[str] = frozenset()
    """UIDs of nominated pods that block the removal of their node (`fixed` only)."""
    is_scale_down_disabled: bool = False
    """Whether this loop waits for more pending pods, and must not delete nodes meanwhile."""
