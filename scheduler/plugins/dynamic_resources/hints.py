"""What wakes a pod that waits for claims or devices. Source: kube-scheduler 1.36, DynamicResources."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from machinery.pb import core, devices
from scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
)
from scheduler.framework.types import PodInfo
from scheduler.plugins.dynamic_resources.pod_claims import ClaimError, claims_of, is_allocated, may_use
from scheduler.plugins.dynamic_resources.tracker import ClaimTracker


class Hints:
    def __init__(self, claims: ClaimTracker) -> None:
        self._claims = claims

    def registrations(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.Add | ActionType.Update
        on_node = ActionType.Add | ActionType.UpdateNodeAllocatable | ActionType.UpdateNodeLabel
        claim_made = ClusterEvent(EventResource.Pod, ActionType.UpdatePodGeneratedResourceClaim)
        return (
            ClusterEventWithHint(ClusterEvent(EventResource.Node, on_node)),
            ClusterEventWithHint(ClusterEvent(EventResource.ResourceClaim, changed), self.after_claim_change),
            ClusterEventWithHint(claim_made, self.after_claim_made),
            ClusterEventWithHint(ClusterEvent(EventResource.DeviceClass, changed)),
            ClusterEventWithHint(ClusterEvent(EventResource.ResourceSlice, changed)),
        )

    def after_claim_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """One of the pod's claims came or changed its status, or another's devices became free."""
        old, new = expect(devices.ResourceClaim, old, new)
        if not isinstance(new, devices.ResourceClaim):
            return QueueingHint.Skip
        freed = isinstance(old, devices.ResourceClaim) and is_allocated(old) and not is_allocated(new)
        if not freed and not may_use(pod.pod, new):
            return QueueingHint.Skip  # the common case: every pending pod hears of every claim
        try:
            claims = claims_of(pod.pod, self._claims.get)
        except ClaimError:
            return QueueingHint.Skip
        if freed:
            return QueueingHint.Queue
        if all(claim.metadata.uid != new.metadata.uid for claim in claims):
            return QueueingHint.Skip
        if isinstance(old, devices.ResourceClaim) and old.status == new.status:
            return QueueingHint.Skip
        return QueueingHint.Queue

    def after_claim_made(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """The pod's own claims are all there."""
        _, new = expect(core.Pod, old, new)
        if not isinstance(new, core.Pod) or new.metadata.uid != pod.uid:
            return QueueingHint.Skip
        try:
            claims_of(new, self._claims.get)
        except ClaimError:
            return QueueingHint.Skip
        return QueueingHint.Queue
