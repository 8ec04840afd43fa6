"""The state that the autoscaler keeps from loop to loop."""

from __future__ import annotations

import random

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.cluster_state import ClusterStateRegistry
from nominee.autoscaler.planning.node_groups.status import StatusBuilder
from nominee.autoscaler.planning.objects.nominations import Nominations
from nominee.autoscaler.planning.objects.observation import CloudView
from nominee.autoscaler.planning.scale_down.cooldowns import Cooldowns
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.scale_down.planner import ScaleDownPlanner
from nominee.autoscaler.planning.snapshot.dynamic_resources import DynamicResources, Listers
from nominee.autoscaler.planning.snapshot.scheduling_hints import SchedulingHints
from nominee.autoscaler.planning.snapshot.templates import TemplateNodeProvider
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.types import PodInfo


class AutoscalerState:
    """The state of one autoscaler; the steps of the loop read and change it.

    `clock` is only read. `listers` are what the simulation's plugins read besides nodes and pods.
    """

    def __init__(
        self,
        options: Options,
        *,
        gates: Gates,
        clock: Clock,
        rng: random.Random,
        listers: Listers | None = None,
    ) -> None:
        self.options, self.gates, self.clock, self.rng = options, gates, clock, rng
        self.started_at = clock.monotonic()
        self.is_cleaned_up = False
        """Whether the taints that an earlier process left behind have been removed."""
        self.view = CloudView()
        """The node groups as the provider reported them last, with the changes made since."""
        self.registry = ClusterStateRegistry(options)
        self.devices = DynamicResources(listers or {})
        self.templates = TemplateNodeProvider(force_daemon_sets=options.force_ds)
        self.nominations = Nominations(options.nomination_timeout)
        self.pending_hints = SchedulingHints()
        self.pod_infos: dict[str, PodInfo] = {}
        """What is derived from the scheduled pods of the last loop, by UID."""
        self.planner = ScaleDownPlanner(options)
        self.cooldowns = Cooldowns(options)
        self.deletions = NodeDeletionTracker()
        self.lacking_devices: frozenset[str] = frozenset()
        """The new nodes that have fewer devices than another node of their group had."""
        self.doubtful_taints: set[str] = set()
        """The nodes that may have a ToBeDeleted taint: its write, or its removal, was reported as failed."""
        self.status = StatusBuilder()
        self.status_written_at = float("-inf")
