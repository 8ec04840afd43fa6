"""Try pods on nodes without a cluster, for the autoscaler.

Nothing is written anywhere. Source: cluster-autoscaler 1.36, scheduler-based predicate checking.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from nominee.machinery.api.kinds import Kind
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Lister, Status
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import PluginFactory, Profile
from nominee.scheduler.framework.types import PodInfo

OUT_OF_REACH = "node(s) didn't satisfy plugin(s) of PreFilter"


class Simulator:
    """A profile's filters over a snapshot of one's own, to be forked, changed and reverted."""

    def __init__(
        self,
        profile: Profile,
        registry: Mapping[str, PluginFactory],
        *,
        gates: Gates,
        clock: Clock,
        listers: Mapping[Kind[Any], Lister[Any]] | None = None,
    ) -> None:
        self.snapshot = Snapshot()
        self.framework = Framework(
            profile,
            registry,
            Environment(
                snapshot=self.snapshot,
                nominator=Nominator(),
                gates=gates,
                version=gates.version,
                clock=clock,
                rng=random.Random(0),  # filters draw nothing
                listers=listers or {},
            ),
        )

    def check(self, pod: PodInfo, node_name: str, state: CycleState | None = None) -> Status | None:
        """Return why the pod does not fit the node; None when it does.

        `state`, a new one, is for callers that go on from here (Reserve).

        Raises:
            KeyError: there is no such node.
        """
        node = self.snapshot.nodes[self.snapshot.row_of[node_name]]
        state = CycleState() if state is None else state
        narrowed, status, _ = self.framework.run_pre_filter_plugins(state, pod, self.snapshot)
        if status is not None:
            return status
        if narrowed.node_names is not None and node_name not in narrowed.node_names:
            return Status(Code.UnschedulableAndUnresolvable, (OUT_OF_REACH,))
        status = self.framework.run_filter_plugins(state, pod, node)
        return None if status is None or status.is_success else status
