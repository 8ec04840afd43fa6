"""NodePorts: a host port is used once per node, address and protocol. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Rows,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo, ports_conflict


class NodePorts(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes where a host port of the pod is taken."""

    name = "NodePorts"
    only_rejection = Status(
        Code.Unschedulable, ("node(s) didn't have free ports for the requested pod ports",), name
    )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None if pod.host_ports else Status(Code.Skip)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return self.only_rejection if ports_conflict(node.used_ports, pod.host_ports) else None

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        if not pod.host_ports:
            return None
        column = snapshot.column("ports", lambda info: info.used_ports, follows_pods=True)
        return column.mask(lambda used: not ports_conflict(used, pod.host_ports), rows)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            on(EventResource.Pod, ActionType.Delete, self._after_pod_deleted),
            on(EventResource.Node, ActionType.Add),
        )

    def _after_pod_deleted(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, _ = expect(core.Pod, old, None)
        if not isinstance(old, core.Pod):
            return QueueingHint.Skip
        if not old.spec.nodeName and not old.status.nominatedNodeName:
            return QueueingHint.Skip  # it held no ports
        freed = frozenset(PodInfo(old).host_ports)
        return QueueingHint.Queue if ports_conflict(freed, pod.host_ports) else QueueingHint.Skip
