"""Keeps the pods that each Service selects from the informers' events."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nominee.controllers.endpoints.members import Members
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer


class ServicePods:
    """The pods of the Services that select any.

    `changed` is called with the key of each Service whose endpoints a change of a pod may concern.
    """

    def __init__(
        self,
        services: Informer[core.Service],
        pods: Informer[core.Pod],
        changed: Callable[[ObjectKey], None],
    ) -> None:
        self._changed = changed
        self._pods = pods
        self._members = Members()
        services.on_change(self._set_service, deletions=False)
        services.add_handler(on_delete=lambda service, _stale: self._members.remove_service(key_of(service)))
        pods.add_handler(
            on_add=lambda pod: self._queue(self._members.set_pod(None, pod)),
            on_update=lambda old, new: self._queue(self._members.set_pod(old, new)),
            on_delete=lambda pod, _stale: self._queue(self._members.remove_pod(key_of(pod))),
        )

    def of(self, service: core.Service) -> list[core.Pod]:
        """Return the pods that a Service selects, by name."""
        found = [self._pods.get_by_key(key) for key in self._members.of(key_of(service))]
        return [pod for pod in found if pod is not None]

    def batch_seconds(self, key: ObjectKey) -> float:
        return self._members.batch_seconds(key)

    def _set_service(self, service: core.Service) -> None:
        self._members.set_service(service, self._pods.list)

    def _queue(self, services: Iterable[ObjectKey]) -> None:
        for service in services:
            self._changed(service)
