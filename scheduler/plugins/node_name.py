"""Keep a pod on the node that its spec names. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    Rows,
    Status,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.snapshot import Snapshot
    from nominee.scheduler.framework.types import NodeInfo, PodInfo


class NodeName(FilterPlugin, EnqueueExtensions):
    """A pod whose spec names a node (set by its creator) fits only there."""

    name = "NodeName"
    looks_at_pods = False
    _mismatch = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) didn't match the requested node name",), "NodeName"
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        wanted = pod.pod.spec.nodeName
        return self._mismatch if wanted and wanted != node.name else None

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

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        return (self._mismatch,), np.zeros(len(rows), dtype=np.intp)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(ClusterEvent(EventResource.Node, ActionType.Add)),)
