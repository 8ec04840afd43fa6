"""Try pods on nodes without a cluster, for the autoscaler and for explanations.

Nothing is written anywhere. Source: cluster-autoscaler 1.36, scheduler-based predicate checking.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
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
from nominee.scheduler.framework.types import NodeInfo, PodInfo

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
        snapshot: Snapshot | None = None,
    ) -> None:
        self.snapshot = snapshot if snapshot is not None else Snapshot()
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
        self._next = 0  # where the search for a node goes on, so that pods spread

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

    def place(self, pod: PodInfo, acceptable: Callable[[NodeInfo], bool] = lambda node: True) -> str | None:
        """Put the pod on the first acceptable node that it fits; return that node's name, or None.

        The next search begins behind the node that was taken.
        """
        snapshot = self.snapshot
        size = len(snapshot)
        state = CycleState()
        narrowed, status, _ = self.framework.run_pre_filter_plugins(state, pod, snapshot)
        if status is not None or not size:
            return None
        verdicts = self.framework.filter_rows(state, pod, snapshot, slice(0, size))
        for offset in range(size):
            row = (self._next + offset) % size
            node = snapshot.nodes[row]
            if narrowed.node_names is not None and node.name not in narrowed.node_names:
                continue
            if all(mask[row] for _, mask in verdicts) and acceptable(node):
                snapshot.add_pod(pod, node.name)
                self._next = (row + 1) % size
                return node.name
        return None
