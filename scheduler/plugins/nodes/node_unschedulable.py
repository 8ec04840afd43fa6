"""Keep pods off cordoned nodes. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import tolerates
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
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
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.types import NodeInfo, PodInfo

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


class NodeUnschedulable(FilterPlugin, EnqueueExtensions):
    """Keeps pods off cordoned nodes, unless they tolerate that."""

    name = "NodeUnschedulable"
    looks_at_pods = False
    only_rejection = Status(
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
        return self.only_rejection

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        if not snapshot.unschedulable_count or self._tolerated(pod.pod):
            return None
        return ~snapshot.unschedulable[rows]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node_changes = ActionType.Add | ActionType.UpdateNodeTaint
        return (
            on(EventResource.Node, node_changes, self._after_node_change),
            on(EventResource.Pod, ActionType.UpdatePodToleration, self._after_toleration_change),
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
