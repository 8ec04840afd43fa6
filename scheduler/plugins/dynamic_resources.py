"""DynamicResources, for clusters without resource claims: no ResourceClaim can exist here.

A pod that refers to claims waits for ever; for all others the plugin only takes part where that shows: its
word in the messages, and its PostFilter that fails when its PreFilter never ran (so that preemption does not
run and a nomination is kept). Source: kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from machinery.pb import core
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
)
from scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    Handle,
    NodeStatuses,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    Status,
)
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import NodeInfo, PodInfo

_STATE = "PreFilterDynamicResources"


class DynamicResources(PreEnqueuePlugin, PreFilterPlugin, PostFilterPlugin, ScorePlugin, EnqueueExtensions):
    name = "DynamicResources"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._enabled = handle.gates.enabled("DynamicResourceAllocation")

    def _missing_claim(self, pod: PodInfo) -> Status | None:
        for claim in pod.pod.spec.resourceClaims:
            if claim.resourceClaimName:
                text = f'resourceclaim "{claim.resourceClaimName}" not found'
            else:
                text = f'pod "{pod.key}": ResourceClaim not created yet'
            return Status(Code.UnschedulableAndUnresolvable, (text,), self.name)
        return None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._missing_claim(pod) if self._enabled else None

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not self._enabled:
            return None, Status(Code.Skip)
        missing = self._missing_claim(pod)
        if missing is not None:
            return None, missing
        state.write(_STATE, True)
        return None, Status(Code.Skip)

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        if not self._enabled:
            return None, Status(Code.Unschedulable)
        if state.get(_STATE) is None:
            return None, Status(Code.Error, ("not found",), self.name)
        return None, Status(Code.Unschedulable, ("no new claims to deallocate",), self.name)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        return np.zeros(len(rows), dtype=np.int64)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._enabled:
            return ()
        added_or_changed = ActionType.Add | ActionType.Update
        on_node = ActionType.Add | ActionType.UpdateNodeAllocatable | ActionType.UpdateNodeLabel
        claim_made = ClusterEvent(EventResource.Pod, ActionType.UpdatePodGeneratedResourceClaim)
        return (
            ClusterEventWithHint(ClusterEvent(EventResource.Node, on_node)),
            ClusterEventWithHint(ClusterEvent(EventResource.ResourceClaim, added_or_changed)),
            ClusterEventWithHint(claim_made, self._after_claim_made),
            ClusterEventWithHint(ClusterEvent(EventResource.DeviceClass, added_or_changed)),
            ClusterEventWithHint(ClusterEvent(EventResource.ResourceSlice, added_or_changed)),
        )

    def _after_claim_made(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(core.Pod, old, new)
        if not isinstance(new, core.Pod) or new.metadata.uid != pod.uid:
            return QueueingHint.Skip
        return QueueingHint.Skip if self._missing_claim(PodInfo(new)) else QueueingHint.Queue
