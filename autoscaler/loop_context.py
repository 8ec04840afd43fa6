"""What one loop of the autoscaler works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.planning.deletions import Deletions
from autoscaler.planning.observation import CloudView, Observation
from autoscaler.planning.pods import Arranged
from autoscaler.planning.snapshot import ClusterSnapshot
from autoscaler.planning.template_node import TemplateNode
from autoscaler.result import LoopResult
from machinery.api.pb import core


@dataclass(slots=True)
class LoopContext:
    """What was observed, and what the loop's steps have made of it until now."""

    observation: Observation
    view: CloudView
    deletions: Deletions
    """As they were before the view."""
    arranged: Arranged
    snapshot: ClusterSnapshot
    templates: Mapping[str, TemplateNode]
    nodes: list[core.Node]
    ready: list[core.Node]
    result: LoopResult
    holding: frozenset[str] = frozenset()
    """Uids of pods whose nomination holds their node."""
    scale_down_disabled: bool = False
