"""DeferredPodScheduling: the node's policy, and parking, as Kubernetes 1.37 shipped them (KEP-5836).

In the default profile with `--resize-preemption-flavour=1.37` and the gate on.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.api.deferred_resize import (
    FITS,
    NODE_DISABLES_PREEMPTION,
    is_deferred_resize,
    is_disabled_by_node,
)
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
    Handle,
    PermitPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin, EnqueueExtensions):
    """Rejects a node that disables preemption for resizes; parks a resize that fits."""

    name = "DeferredPodScheduling"
    looks_at_pods = False
    _other_node = Status(Code.UnschedulableAndUnresolvable, ("pod assigned to different node",), name)
    _disabled = Status(Code.UnschedulableAndUnresolvable, (NODE_DISABLES_PREEMPTION,), name)
    _parked = Status(Code.UnschedulableAndUnresolvable, (FITS,), name)

    def __init__(self, args: object, handle: Handle) -> None:
        self._is_on = handle.resize_preemption is not None

    def _concerns(self, pod: PodInfo) -> bool:
        return self._is_on and is_deferred_resize(pod.pod)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None if self._concerns(pod) else Status(Code.Skip)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not self._concerns(pod):
            return None
        if own_node(pod.pod) != node.name:
            return self._other_node
        return self._disabled if is_disabled_by_node(node.node) else None

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        return (self._parked if self._concerns(pod) else None), 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return tuple(
            on(EventResource.Node, action, self._after_node_change)
            for action in (ActionType.UpdateNodePreemptionPolicy, ActionType.Add)
        )

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Queue the pod when its node has come, or its policy was cleared."""
        old, new = expect(core.Node, old, new)
        if not self._concerns(pod) or not isinstance(new, core.Node):
            return QueueingHint.Skip
        allows = new.metadata.name == own_node(pod.pod) and not is_disabled_by_node(new)
        before = is_disabled_by_node(old) if isinstance(old, core.Node) else True
        return QueueingHint.Queue if allows and before else QueueingHint.Skip
