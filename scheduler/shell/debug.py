"""`/debug/queue`: where every pending pod is, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from machinery.clock import rfc3339_micro
from scheduler.framework.types import QueuedPodInfo
from scheduler.shell.scheduler import Scheduler


def queues(scheduler: Scheduler) -> dict[str, Any]:
    """`since` is when the pod came, or last failed; error backoff is among `backoff`."""
    queue = scheduler.queue
    waiting = {pod.pod.uid for pod in scheduler.waiting}
    on_the_way = scheduler.bindings.binding.values()
    return {
        "active": _pods(queue.active()),
        "backoff": _pods([*queue.backing_off(), *queue.error_backing_off()]),
        "unschedulable": _pods(queue.unschedulable()),
        "gated": _pods(queue.gated()),
        "waiting_on_permit": [{"pod": str(pod.pod.key), "node": pod.node_name} for pod in scheduler.waiting],
        "binding": [
            {"pod": str(attempt.pod.key), "node": attempt.node_name}
            for attempt in on_the_way
            if attempt.pod.uid not in waiting
        ],
        "nominated": {
            node: [str(pod.key) for pod in pods.values()] for node, pods in queue.nominator.by_node.items()
        },
    }


def _pods(infos: Iterable[QueuedPodInfo]) -> list[dict[str, Any]]:
    return [
        {
            "pod": str(info.pod_info.key),
            "attempts": info.attempts,
            "plugins": sorted(info.rejectors),
            "since": rfc3339_micro(info.timestamp),
        }
        for info in infos
    ]
