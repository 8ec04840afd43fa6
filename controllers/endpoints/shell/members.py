"""Which pods each Service selects, kept as the informers' objects change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controllers.endpoints.pods import changes_endpoints, has_endpoints
from machinery.api.objects import ObjectKey, key_of
from machinery.api.pb import core
from machinery.client.informer import Informer

Selector = tuple[tuple[str, str], ...]
_AT_ONCE: Final = 50
"""Services with no more pods are looked at again at once."""
_BATCH_SECONDS_PER_POD, _BATCH_SECONDS_MAX = 0.001, 1.0


class ServicePods:
    """The pods of the Services that select any.

    `changed` is called with the key of each Service whose endpoints a change of a pod may concern. A change
    of a pod costs nothing in a namespace without such Services, and one match for each of them elsewhere.
    """

    def __init__(
        self,
        services: Informer[core.Service],
        pods: Informer[core.Pod],
        changed: Callable[[ObjectKey], None],
    ) -> None:
        self._changed = changed
        self._pods = pods
        self._selectors: dict[str, dict[str, Selector]] = {}
        self._members: dict[ObjectKey, set[ObjectKey]] = {}
        services.add_handler(
            on_add=self._service_set,
            on_update=lambda _old, new: self._service_set(new),
            on_delete=lambda service, _stale: self._service_gone(key_of(service)),
        )
        pods.add_handler(
            on_add=lambda pod: self._pod_set(None, pod),
            on_update=self._pod_set,
            on_delete=lambda pod, _stale: self._pod_gone(pod),
        )

    def of(self, service: core.Service) -> list[core.Pod]:
        """Return the pods that a Service selects, by name."""
        found = [self._pods.get_by_key(key) for key in sorted(self._members.get(key_of(service), ()))]
        return [pod for pod in found if pod is not None]

    def batch_seconds(self, key: ObjectKey) -> float:
        """Return how long to gather changes of a Service's pods: a look at it takes time for each of them."""
        number = len(self._members.get(key, ()))
        return min(_BATCH_SECONDS_MAX, number * _BATCH_SECONDS_PER_POD) if number > _AT_ONCE else 0.0

    def _service_set(self, service: core.Service) -> None:
        key = key_of(service)
        if not has_endpoints(service):
            self._service_gone(key)
            return
        selector = tuple(sorted(service.spec.selector.items()))
        own = self._selectors.setdefault(key.namespace, {})
        if own.get(key.name) == selector:
            return
        own[key.name] = selector
        self._members[key] = {
            key_of(pod) for pod in self._pods.list(key.namespace) if _selects(selector, pod)
        }

    def _service_gone(self, key: ObjectKey) -> None:
        self._members.pop(key, None)
        own = self._selectors.get(key.namespace, {})
        own.pop(key.name, None)
        if not own:
            self._selectors.pop(key.namespace, None)

    def _pod_set(self, old: core.Pod | None, new: core.Pod) -> None:
        selectors = self._selectors.get(new.metadata.namespace)
        if not selectors:
            return
        pod = key_of(new)
        shows = old is None or changes_endpoints(old, new)
        for name, selector in selectors.items():
            service = ObjectKey(pod.namespace, name)
            members = self._members[service]
            was, is_now = pod in members, _selects(selector, new)
            if is_now:
                members.add(pod)
            else:
                members.discard(pod)
            if was != is_now or (is_now and shows):
                self._changed(service)

    def _pod_gone(self, pod: core.Pod) -> None:
        key = key_of(pod)
        for name in self._selectors.get(key.namespace, ()):
            service = ObjectKey(key.namespace, name)
            if key in self._members[service]:
                self._members[service].discard(key)
                self._changed(service)


def _selects(selector: Selector, pod: core.Pod) -> bool:
    labels = pod.metadata.labels
    return all(labels.get(name) == value for name, value in selector)
