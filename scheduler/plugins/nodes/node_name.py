"""Keep a pod on the node that its spec names. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    on,
)
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Rows,
    Status,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.types import NodeInfo, PodInfo


class NodeName(FilterPlugin, EnqueueExtensions):
    """A pod whose spec names a node (set by its creator) fits only there."""

    name = "NodeName"
    looks_at_pods = False
    only_rejection = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) didn't match the requested node name",), "NodeName"
    )

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        wanted = pod.pod.spec.nodeName
        return self.only_rejection if wanted and wanted != node.name else None

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        wanted = pod.pod.spec.nodeName
        if not wanted:
            return None
        mask = np.zeros(len(snapshot), dtype=np.bool_)
        row = snapshot.row_of.get(wanted)
        if row is not None:
            mask[row] = True
        return mask[rows]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (on(EventResource.Node, ActionType.Add),)
