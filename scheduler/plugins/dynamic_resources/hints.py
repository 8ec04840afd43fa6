"""Queueing hints of DynamicResources. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from nominee.machinery.api.pb import core, devices
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources.pod_claims import ClaimError, claims_of, is_allocated
from nominee.scheduler.plugins.dynamic_resources.tracker import ClaimTracker


@dataclass(frozen=True, slots=True)
class _Event:
    """The relevant part of a claim's change. `freed`: its devices are free again."""

    old: Message | None = None
    new: Message | None = None
    name: str = ""
    namespace: str = ""
    uid: str = ""
    freed: bool = False
    same_status: bool = False

    @classmethod
    def read(cls, old: Message | None, new: Message | None) -> _Event:
        """Return the event.

        Raises:
            TypeError: an object is no claim.
        """
        within = "unexpected object in isSchedulableAfterClaimChange"
        before, after = expect(devices.ResourceClaim, old, new, within=within)
        if not isinstance(after, devices.ResourceClaim):
            return cls(old, new)
        freed = same = False
        if isinstance(before, devices.ResourceClaim):
            freed = is_allocated(before) and not is_allocated(after)
            same = before.status == after.status
        metadata = after.metadata
        return cls(old, new, metadata.name, metadata.namespace, metadata.uid, freed, same)


class Hints:
    """The registrations of DynamicResources and their hints."""

    def __init__(self, claims: ClaimTracker) -> None:
        self._claims = claims
        self._event = _Event()  # the last one: all pending pods are asked about the same

    def registrations(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make a pod with claims schedulable."""
        changed = ActionType.Add | ActionType.Update
        on_node = ActionType.Add | ActionType.UpdateNodeAllocatable | ActionType.UpdateNodeLabel
        return (
            on(EventResource.Node, on_node),
            on(EventResource.ResourceClaim, changed, self.after_claim_change),
            on(EventResource.Pod, ActionType.UpdatePodGeneratedResourceClaim, self.after_claim_made),
            on(EventResource.DeviceClass, changed),
            on(EventResource.ResourceSlice, changed),
        )

    def after_claim_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Return the hint when the pod's claim came or changed its status, or another's was deallocated."""
        if old is not self._event.old or new is not self._event.new:
            self._event = _Event.read(old, new)
        event = self._event
        if not event.freed and (event.name not in pod.resource_claims or event.namespace != pod.namespace):
            return QueueingHint.Skip  # the common case: every pending pod gets the events of every claim
        try:
            claims = claims_of(pod.pod, self._claims.get)
        except ClaimError:
            return QueueingHint.Skip
        if event.freed:
            return QueueingHint.Queue
        if event.same_status or all(claim.metadata.uid != event.uid for claim in claims):
            return QueueingHint.Skip
        return QueueingHint.Queue

    def after_claim_made(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Return the hint when the pod's own claims are all there."""
        _, new = expect(core.Pod, None, new, within="unexpected object in isSchedulableAfterPodChange")
        if not isinstance(new, core.Pod) or new.metadata.uid != pod.uid:
            return QueueingHint.Skip
        try:
            claims_of(new, self._claims.get)
        except ClaimError:
            return QueueingHint.Skip
        return QueueingHint.Queue
