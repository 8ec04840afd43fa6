"""When the change happened that a write of endpoints follows: the last-change-trigger-time annotation. Pure.

Source: Kubernetes 1.36, k8s.io/endpointslice/util (TriggerTimeTracker).
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.controllers.endpoints.pods import TRIGGER_TIME, ready_since
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, meta
from nominee.machinery.runtime.clock import rfc3339


class TriggerTimes:
    """The times of each Service and its pods as of the last look. Times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, dict[str, int]] = {}
        self._services: dict[ObjectKey, int] = {}

    def next(self, service: core.Service, pods: Iterable[core.Pod]) -> int:
        """Return the earliest of the times that changed since the last look, 0 where none did.

        At the first look that is the Service's creation.
        """
        key, created = key_of(service), service.metadata.creationTimestamp.seconds
        known, before = key in self._services, self._pods.get(key, {})
        times = {pod.metadata.name: time for pod in pods if (time := ready_since(pod))}
        changed = [time for name, time in times.items() if time > before.get(name, 0)]
        if created > self._services.get(key, 0):
            changed.append(created)
        self._pods[key], self._services[key] = times, created
        return min(changed, default=0) if known else created

    def forget(self, key: ObjectKey) -> None:
        self._pods.pop(key, None)
        self._services.pop(key, None)


def annotate(metadata: meta.ObjectMeta, time: int) -> None:
    """Set the annotation in place; 0 removes it."""
    if time:
        metadata.annotations[TRIGGER_TIME] = rfc3339(float(time))
    else:
        metadata.annotations.pop(TRIGGER_TIME, None)
