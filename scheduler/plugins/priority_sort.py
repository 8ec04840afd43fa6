"""Order the queue by priority. Source: kube-scheduler 1.36."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nominee.scheduler.framework.interface import (
    QueueSortPlugin,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.types import QueuedPodInfo


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has been in the queue for longer."""

    name = "PrioritySort"

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        if a.pod_info.priority != b.pod_info.priority:
            return a.pod_info.priority > b.pod_info.priority
        return a.timestamp < b.timestamp

    def sort_key(self, pod: QueuedPodInfo) -> tuple[int, float]:
        return (-pod.pod_info.priority, pod.timestamp)
