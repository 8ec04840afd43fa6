"""The pods that each Service selects, updated with each change of a Service or a pod. Pure.

A change of a pod costs nothing in a namespace without Services that select pods, and one match for each of
them elsewhere. (Upstream lists the namespace's pods at each sync.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nominee.controllers.endpoints.pods import changes_endpoints, has_endpoints
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core

Selector = tuple[tuple[str, str], ...]
_UNBATCHED_PODS_MAX: Final = 50
"""Changes of Services with no more pods are not gathered."""
_BATCH_SECONDS_PER_POD, _BATCH_SECONDS_MAX = 0.001, 1.0


class Members:
    """The keys of the selected pods, by the key of the Service."""

    def __init__(self) -> None:
        self._selectors: dict[str, dict[str, Selector]] = {}
        self._members: dict[ObjectKey, set[ObjectKey]] = {}

    def of(self, service: ObjectKey) -> list[ObjectKey]:
        """Return the keys of the pods that a Service selects, by name."""
        return sorted(self._members.get(service, ()))

    def batch_seconds(self, service: ObjectKey) -> float:
        """Return how long to gather changes of a Service's pods: a reconciliation takes time for each pod."""
        number = len(self._members.get(service, ()))
        if number <= _UNBATCHED_PODS_MAX:
            return 0.0
        return min(_BATCH_SECONDS_MAX, number * _BATCH_SECONDS_PER_POD)

    def set_service(self, service: core.Service, pods_of: Callable[[str], Iterable[core.Pod]]) -> None:
        """Add or change a Service; `pods_of` lists a namespace's pods for a new selector."""
        key = key_of(service)
        if not has_endpoints(service):
            self.remove_service(key)
            return
        selector = tuple(sorted(service.spec.selector.items()))
        selectors = self._selectors.setdefault(key.namespace, {})
        if selectors.get(key.name) == selector:
            return
        selectors[key.name] = selector
        self._members[key] = {key_of(pod) for pod in pods_of(key.namespace) if _selects(selector, pod)}

    def remove_service(self, key: ObjectKey) -> None:
        self._members.pop(key, None)
        selectors = self._selectors.get(key.namespace, {})
        selectors.pop(key.name, None)
        if not selectors:
            self._selectors.pop(key.namespace, None)

    def set_pod(self, old: core.Pod | None, new: core.Pod) -> list[ObjectKey]:
        """Add or change a pod; return the keys of the Services whose endpoints may change."""
        selectors = self._selectors.get(new.metadata.namespace)
        if not selectors:
            return []
        pod = key_of(new)
        is_visible = old is None or changes_endpoints(old, new)
        changed = []
        for name, selector in selectors.items():
            service = ObjectKey(pod.namespace, name)
            members = self._members[service]
            was, is_now = pod in members, _selects(selector, new)
            if is_now:
                members.add(pod)
            else:
                members.discard(pod)
            if was != is_now or (is_now and is_visible):
                changed.append(service)
        return changed

    def remove_pod(self, pod: ObjectKey) -> list[ObjectKey]:
        """Drop a pod; return the keys of the Services that selected it."""
        changed = []
        for name in self._selectors.get(pod.namespace, ()):
            service = ObjectKey(pod.namespace, name)
            if pod in self._members[service]:
                self._members[service].discard(pod)
                changed.append(service)
        return changed


def _selects(selector: Selector, pod: core.Pod) -> bool:
    labels = pod.metadata.labels
    return all(labels.get(name) == value for name, value in selector)
