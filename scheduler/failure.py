"""Decide where a pod goes whose attempt has failed, and its nomination.

Source: kube-scheduler 1.36, failure handler (handleSchedulingFailure).
"""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.interface import NominatingInfo
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue


def is_recreated(pod: PodInfo, cached: core.Pod | None) -> bool:
    """Return whether another pod has the name of the popped one by now.

    It is in the queue by itself, with counts of its own: nothing of the old attempt may reach it, neither its
    place in the queue nor its nomination, event or status (kubernetes/kubernetes#138324).
    """
    return cached is not None and cached.metadata.uid != pod.uid


def requeue_failed(
    queue: PrioritySchedulingQueue,
    info: QueuedPodInfo,
    cached: core.Pod | None,
    nominating: NominatingInfo | None,
    now: float,
    *,
    is_queued_if_bound: bool = False,
) -> bool:
    """Put the newest state of the pod back into the queue, unless it is gone, bound or recreated.

    `info` has the plugins that rejected the pod; `cached` is the pod that the watch last showed under its
    name. The pod is not in flight any more in any case. Return whether it is in the queue again.
    `is_queued_if_bound`: the attempt was at a resize that is still to be tried.
    """
    uid = info.pod_info.uid
    if is_recreated(info.pod_info, cached):
        queue.done(uid)
        return False
    if cached is None or (cached.spec.nodeName and not is_queued_if_bound):
        queue.done(uid)
        requeued = False
    else:
        if cached is not info.pod_info.pod:
            info.pod_info = PodInfo(cached, info.pod_info.options)
        queue.add_unschedulable(info, now)
        requeued = True
    # So that the next cycle respects the nomination before the watch shows it.
    queue.nominate(info.pod_info, nominating)
    return requeued
