"""GangScheduling: pods of a gang get nodes together, at least minCount of them, or none does.

Source: KEP-4671; kube-scheduler 1.36, GangScheduling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, workloads
from nominee.scheduler.attempts.group import group_to_try
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.scheduling_groups import group_of
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    Handle,
    PermitPlugin,
    PreEnqueuePlugin,
    Status,
)
from nominee.scheduler.framework.types import PodInfo

PERMIT_TIMEOUT_SECONDS: Final = 300.0


class GangScheduling(PreEnqueuePlugin, PermitPlugin, EnqueueExtensions):
    """Holds a gang's pods back until there are minCount, and at Permit until minCount have nodes."""

    name = "GangScheduling"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.scheduling_groups
        self._lister = handle.lister(kinds.POD_GROUP)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        key = group_to_try(pod.pod)
        if key is None:
            return None
        group = self._lister.get(key.name, key.namespace)
        if group is None:
            text = f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            return Status(Code.UnschedulableAndUnresolvable, (text,))
        wanted = _min_count(group)
        if wanted is None or len(self._groups.members(key)) >= wanted:
            return None
        text = "waiting for minCount pods from a gang to appear in scheduling queue"
        return Status(Code.UnschedulableAndUnresolvable, (text,))

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        key = group_of(pod.pod)
        if key is None:
            return None, 0.0
        group = self._lister.get(key.name, key.namespace)
        if group is None:
            text = f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{key.name}" not found'
            return Status(Code.Error, (text,)), 0.0
        wanted = _min_count(group)
        if wanted is None:
            return None, 0.0
        if self._groups.scheduled_count(key) < wanted:
            # They may be waiting for this pod to get its node.
            self._handle.activate({str(key_of(other)): other for other in self._groups.left_behind(key)})
            text = "waiting for minCount pods from a gang to be scheduled"
            return Status(Code.Wait, (text,)), PERMIT_TIMEOUT_SECONDS
        for uid in self._groups.assumed(key):
            waiting = self._handle.waiting_pod(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return None, 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            on(EventResource.UnscheduledPod, ActionType.Add, _after_pod_added),
            on(EventResource.AssignedPod, ActionType.Add, _after_pod_added),
            on(EventResource.PodGroup, ActionType.Add, _after_group_added),
            on(EventResource.PodGroup, ActionType.Update, _after_group_changed),
        )


def _min_count(group: workloads.PodGroup) -> int | None:
    """Return the gang's minCount; None when the group is no gang."""
    policy = group.spec.schedulingPolicy
    return policy.gang.minCount if policy.HasField("gang") else None


def _after_pod_added(pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
    key = group_of(pod.pod)
    _, added = expect(core.Pod, old, new)
    return _queue_if(key is not None and isinstance(added, core.Pod) and group_of(added) == key)


def _after_group_added(pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
    _, added = expect(workloads.PodGroup, old, new)
    return _queue_if(isinstance(added, workloads.PodGroup) and _is_of(pod, added))


def _after_group_changed(pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
    """Queue the pod when minCount became smaller: it may be reached already."""
    before, after = expect(workloads.PodGroup, old, new)
    if not isinstance(before, workloads.PodGroup) or not isinstance(after, workloads.PodGroup):
        return QueueingHint.Queue
    if not _is_of(pod, after):
        return QueueingHint.Skip
    was, wanted = _min_count(before), _min_count(after)
    return _queue_if(was is None or wanted is None or wanted < was)


def _is_of(pod: PodInfo, group: workloads.PodGroup) -> bool:
    return group_of(pod.pod) == ObjectKey(group.metadata.namespace, group.metadata.name)


def _queue_if(condition: bool) -> QueueingHint:
    return QueueingHint.Queue if condition else QueueingHint.Skip
