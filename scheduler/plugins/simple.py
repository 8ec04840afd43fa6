"""Plugins that check a field or two: PrioritySort, SchedulingGates, NodeName, NodeUnschedulable.

Source: kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import tolerates
from nominee.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
)
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Rows,
    Status,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.snapshot import Snapshot
    from nominee.scheduler.framework.types import NodeInfo, PodInfo, QueuedPodInfo

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has been in the queue for longer."""

    name = "PrioritySort"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        pass

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        if a.pod_info.priority != b.pod_info.priority:
            return a.pod_info.priority > b.pod_info.priority
        return a.timestamp < b.timestamp

    def sort_key(self, pod: QueuedPodInfo) -> tuple[int, float]:
        return (-pod.pod_info.priority, pod.timestamp)


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    """Holds a pod back while it has scheduling gates (KEP-3521)."""

    name = "SchedulingGates"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        pass

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.pod.spec.schedulingGates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status(
            Code.UnschedulableAndUnresolvable, (f"waiting for scheduling gates: [{names}]",), self.name
        )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        event = ClusterEvent(EventResource.Pod, ActionType.UpdatePodSchedulingGatesEliminated)
        return (ClusterEventWithHint(event, self._after_gates_eliminated),)

    def _after_gates_eliminated(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(core.Pod, old, new)
        own = isinstance(new, core.Pod) and new.metadata.uid == pod.uid
        return QueueingHint.Queue if own else QueueingHint.Skip


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


class NodeUnschedulable(FilterPlugin, EnqueueExtensions):
    """Keeps pods off cordoned nodes, unless they tolerate that."""

    name = "NodeUnschedulable"
    looks_at_pods = False
    _cordoned = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) were unschedulable",), "NodeUnschedulable"
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._comparison = handle.gates.enabled("TaintTolerationComparisonOperators")
        self._taint = core.Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")

    def _tolerated(self, pod: core.Pod) -> bool:
        return any(
            tolerates(toleration, self._taint, comparison=self._comparison)
            for toleration in pod.spec.tolerations
        )

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not node.unschedulable or self._tolerated(pod.pod):
            return None
        return self._cordoned

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        if not snapshot.unschedulable_count or self._tolerated(pod.pod):
            return None
        return ~snapshot.unschedulable[rows]

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        return (self._cordoned,), np.zeros(len(rows), dtype=np.intp)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.Node, ActionType.Add | ActionType.UpdateNodeTaint)
        toleration = ClusterEvent(EventResource.Pod, ActionType.UpdatePodToleration)
        return (
            ClusterEventWithHint(node, self._after_node_change),
            ClusterEventWithHint(toleration, self._after_toleration_change),
        )

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Node, old, new)
        was_open = isinstance(old, core.Node) and not old.spec.unschedulable
        is_open = isinstance(new, core.Node) and not new.spec.unschedulable
        return QueueingHint.Queue if is_open and not was_open else QueueingHint.Skip

    def _after_toleration_change(
        self, pod: PodInfo, old: Message | None, new: Message | None
    ) -> QueueingHint:
        _, new = expect(core.Pod, old, new)
        if isinstance(new, core.Pod) and new.metadata.uid == pod.uid and self._tolerated(new):
            return QueueingHint.Queue
        return QueueingHint.Skip
