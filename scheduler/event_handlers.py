"""Apply a change of an object to the scheduler's cache and queue.

Pure: objects, old and new, come in with the time. Source: kube-scheduler 1.36, event handlers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.scheduler.attempts.resize import QueueCalls, Resizes
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.cluster.cache import Cache, CacheError
from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.object_changes import node_changes, pod_changes
from nominee.scheduler.queue.queue_events import UNSCHEDULED_ADD

ASSIGNED_POD_ADD: Final = ClusterEvent(EventResource.AssignedPod, ActionType.Add)
ASSIGNED_POD_DELETE: Final = ClusterEvent(EventResource.AssignedPod, ActionType.Delete)
NODE_ADD: Final = ClusterEvent(EventResource.Node, ActionType.Add)
NODE_DELETE: Final = ClusterEvent(EventResource.Node, ActionType.Delete)


class EventQueue(QueueCalls, Protocol):
    """The methods of the queue that the handlers call."""

    def move_all(
        self,
        event: ClusterEvent,
        old: Message | None,
        new: Message | None,
        now: float,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None: ...


class EventHandlers:
    """The handlers of pods, nodes and all other resources.

    `is_ours` returns whether a profile of that scheduler name exists; `reject_waiting` rejects a pod that
    waits on Permit and returns whether it waited; `report` gets the errors of the cache (the queue gets the
    event all the same). `with_nomination` returns a pending pod with the nomination that counts. With
    `gangs` (GangScheduling) a new pending pod may be what others wait for. `resizes` gets each change of a
    bound pod or of a node once the cache has it, before the pods that wait.
    """

    def __init__(
        self,
        queue: EventQueue,
        cache: Cache,
        *,
        is_ours: Callable[[str], bool],
        pod_info: Callable[[core.Pod], PodInfo] = PodInfo,
        reject_waiting: Callable[[str], bool] = lambda uid: False,
        report: Callable[[str], None] = lambda text: None,
        with_nomination: Callable[[core.Pod], core.Pod] = lambda pod: pod,
        groups: SchedulingGroups | None = None,
        gangs: bool = False,
        resizes: Resizes | None = None,
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._is_ours = is_ours
        self._pod_info = pod_info
        self._reject_waiting = reject_waiting
        self._report = report
        self._with_nomination = with_nomination
        self._groups = groups or SchedulingGroups()
        self._gangs = gangs
        self._resizes = resizes or Resizes()
        self.unannounced_nodes: dict[str, float] = {}
        """When a pod that was assumed on a node left it, and the event of its end had no node."""

    # ---- pods ----

    def pod_added(self, pod: core.Pod, now: float) -> None:
        """Add a pod to the cache if it is bound, to the queue if it is pending and ours."""
        self._groups.put(pod)
        if pod.spec.nodeName:
            self._assigned_pod_added(pod, now)
        elif self._is_ours(pod.spec.schedulerName):
            if self._gangs:
                # Before the pod is added: what came with it, at the same time, stays ahead of it.
                self._queue.move_all(UNSCHEDULED_ADD, None, pod, now)
            self._queue.add(self._pod_info(pod), now)

    def pod_updated(self, old: core.Pod, new: core.Pod, now: float) -> None:
        """Update a pod in cache or queue, or move it from the queue to the cache when it was bound."""
        self._groups.put(new)
        if old.spec.nodeName:
            self._assigned_pod_updated(old, new, now)
        elif new.spec.nodeName:
            # The pod was bound, by us or by another client.
            self._assigned_pod_added(new, now)
            if self._is_ours(old.spec.schedulerName) and not self._resizes.is_queued(new.metadata.uid):
                self._queue.delete(old)
        elif self._is_ours(old.spec.schedulerName):
            self._pending_pod_updated(old, new, now)

    def pod_deleted(self, pod: core.Pod, stale: bool, now: float) -> None:
        """Remove a pod. `stale`: the deletion was missed and `pod` is its last known state."""
        self._groups.remove(pod)
        if stale:
            node = self._cache.node_of(pod.metadata.uid)
            if node and not (pod.spec.nodeName or pod.status.nominatedNodeName):
                # As upstream, plugins take it for a pod without room: the flush alone wakes others.
                self.unannounced_nodes[node] = now
            self._assigned_pod_deleted(pod, now)
            if self._is_ours(pod.spec.schedulerName):
                self._pending_pod_deleted(pod, now)
        elif pod.spec.nodeName:
            self._assigned_pod_deleted(pod, now)
        elif self._is_ours(pod.spec.schedulerName):
            self._pending_pod_deleted(pod, now)

    def _assigned_pod_added(self, pod: core.Pod, now: float) -> None:
        with self._reporting():
            self._cache.add_pod(self._pod_info(pod))
        self._resizes.pod_changed(None, pod, now)
        self._queue.move_all(ASSIGNED_POD_ADD, None, pod, now)

    def _assigned_pod_updated(self, old: core.Pod, new: core.Pod, now: float) -> None:
        info = self._pod_info(new)
        with self._reporting():
            self._cache.update_pod(info)
        self._resizes.pod_changed(old, new, now)
        for event in pod_changes(old, new, info.options):
            self._queue.move_all(event, old, new, now)

    def _assigned_pod_deleted(self, pod: core.Pod, now: float) -> None:
        with self._reporting():
            self._cache.remove_pod(self._pod_info(pod))
        self._resizes.pod_gone(pod)
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, now)

    def _pending_pod_updated(self, old: core.Pod, new: core.Pod, now: float) -> None:
        if old.metadata.resourceVersion == new.metadata.resourceVersion:
            return  # the same object again; counting it would schedule the pod twice
        uid = new.metadata.uid
        if self._cache.is_assumed(uid):
            began = new.metadata.HasField("deletionTimestamp")
            if began and not old.metadata.HasField("deletionTimestamp"):
                self._assumed_pod_deleted(new, now)
            return
        self._queue.update(self._with_nomination(old), self._pod_info(self._with_nomination(new)), now)
        was = old.status.nominatedNodeName
        if was and was != new.status.nominatedNodeName:
            self._nomination_gone(old, now)

    def nomination_settled(self, old: core.Pod, new: core.Pod, now: float) -> None:
        """Take the pod as the server has it: it was taken to be `old`, and is `new`."""
        if not new.spec.nodeName and not self._cache.is_assumed(new.metadata.uid):
            self._queue.update(old, self._pod_info(new), now)

    def _pending_pod_deleted(self, pod: core.Pod, now: float) -> None:
        self._queue.delete(pod)
        if self._cache.is_assumed(pod.metadata.uid):
            self._assumed_pod_deleted(pod, now)
        elif pod.status.nominatedNodeName:
            self._nomination_gone(pod, now)

    def _nomination_gone(self, pod: core.Pod, now: float) -> None:
        """Free the room that was kept for the pod, for the pods that had to respect it.

        Pods of higher priority never had to.
        """
        priority = pod.spec.priority
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, now, lambda info: info.priority <= priority)

    def _assumed_pod_deleted(self, pod: core.Pod, now: float) -> None:
        """Take back a pod that is deleted while it is being bound.

        Its room is free at once; the binding fails: at Permit because it is rejected here, later because
        the pod is gone.
        """
        uid = pod.metadata.uid
        node = self._cache.node_of(uid) or ""
        assumed = self._cache.get_pod(uid)
        if not self._reject_waiting(uid) and assumed is not None:
            self._cache.forget_pod(assumed)
        self._queue.move_all(ASSIGNED_POD_DELETE, assigned_copy(pod, node), None, now)

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except CacheError as error:
            self._report(str(error))

    # ---- nodes ----

    def node_added(self, node: core.Node, now: float) -> None:
        self._cache.put_node(node)
        self._resizes.node_changed(node, now)
        self._queue.move_all(NODE_ADD, None, node, now)

    def node_updated(self, old: core.Node, new: core.Node, now: float) -> None:
        self._cache.put_node(new)
        self._resizes.node_changed(new, now)
        for event in node_changes(old, new):
            self._queue.move_all(event, old, new, now)

    def node_deleted(self, node: core.Node, stale: bool, now: float) -> None:
        self._queue.move_all(NODE_DELETE, node, None, now)
        with self._reporting():
            self._cache.remove_node(node.metadata.name)
        self.unannounced_nodes.pop(node.metadata.name, None)

    # ---- everything else ----

    def other_added(self, resource: EventResource, obj: Message, now: float) -> None:
        self._queue.move_all(ClusterEvent(resource, ActionType.Add), None, obj, now)

    def other_updated(self, resource: EventResource, old: Message, new: Message, now: float) -> None:
        self._queue.move_all(ClusterEvent(resource, ActionType.Update), old, new, now)

    def other_deleted(self, resource: EventResource, obj: Message, now: float) -> None:
        self._queue.move_all(ClusterEvent(resource, ActionType.Delete), obj, None, now)


def assigned_copy(pod: core.Pod, node: str) -> core.Pod:
    """Return the pod as if it were bound: hints look at the node's name."""
    copy = core.Pod()
    copy.CopyFrom(pod)
    copy.spec.nodeName = node
    return copy
