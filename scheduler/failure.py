"""Where a pod goes whose attempt has failed, and what its status is to say.

Source: kube-scheduler 1.36, failure handler (handleSchedulingFailure).
"""

from __future__ import annotations

from machinery.pb import core
from scheduler.framework.interface import NominatingInfo
from scheduler.framework.types import PodInfo, QueuedPodInfo
from scheduler.queue.scheduling_queue import PrioritySchedulingQueue


def requeue_failed(
    queue: PrioritySchedulingQueue,
    info: QueuedPodInfo,
    cached: core.Pod | None,
    nominating: NominatingInfo | None,
    now: float,
) -> bool:
    """Back to the queue with the newest state of the pod, unless it is gone, bound or another of its name.

    `info`'s plugin sets say who refused the pod. `cached` is what the watch last showed under its name.
    Ends the pod's flight in any case; True when it is in the queue again.
    """
    uid = info.pod_info.uid
    if cached is None or cached.metadata.uid != uid or cached.spec.nodeName:
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
