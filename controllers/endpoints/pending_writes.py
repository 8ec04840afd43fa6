"""Writes of a controller that its informer has not shown yet. Pure.

Acting on an informer that is behind would create objects twice. Source: Kubernetes 1.36,
k8s.io/endpointslice/util (EndpointSliceTracker).
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import ObjectKey, resource_version_number, resource_version_of


class PendingWrites:
    """Pending writes by the key of the Service or Endpoints that the written objects belong to."""

    def __init__(self) -> None:
        self._revisions: dict[ObjectKey, set[int]] = {}
        self._deleted: dict[ObjectKey, set[str]] = {}

    def wrote(self, key: ObjectKey, obj: Object) -> None:
        """Note an object as the API server returned it."""
        self._revisions.setdefault(key, set()).add(resource_version_of(obj))

    def deleted(self, key: ObjectKey, obj: Object) -> None:
        self._deleted.setdefault(key, set()).add(obj.metadata.uid)

    def is_own(self, key: ObjectKey, obj: Object) -> bool:
        """Report whether an object that the informer shows is the last one written."""
        return resource_version_of(obj) in self._revisions.get(key, ())

    def is_own_deletion(self, key: ObjectKey, obj: Object) -> bool:
        return obj.metadata.uid in self._deleted.get(key, ())

    def is_stale(self, key: ObjectKey, seen: str, objects: Iterable[Object]) -> bool:
        """Report whether the informer is behind: `seen` is its revision, `objects` its objects of the key."""
        pending = {
            revision for revision in self._revisions.get(key, ()) if revision > resource_version_number(seen)
        }
        gone = self._deleted.get(key, set()) & {obj.metadata.uid for obj in objects}
        for held, left in ((self._revisions, pending), (self._deleted, gone)):
            if left:
                held[key] = left  # type: ignore[assignment]  # each its own kind of set
            else:
                held.pop(key, None)
        return bool(pending or gone)

    def forget(self, key: ObjectKey) -> None:
        self._revisions.pop(key, None)
        self._deleted.pop(key, None)
