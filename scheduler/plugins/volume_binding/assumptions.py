"""Keep claims and volumes as the watch shows them, overlaid by the scheduler's assumptions.

Source: kube-scheduler 1.36, assume cache.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, key_of, resource_version_of
from nominee.scheduler.framework.interface import Handle

M = TypeVar("M", bound=Message)


class Assumptions(Generic[M]):
    """Objects of one kind with assumed ones laid over.

    An assumption ends when it is restored, or when the watch shows a newer object than it was made from.
    """

    def __init__(self, handle: Handle, kind: Kind[M]) -> None:
        self._handle = handle
        self._kind = kind
        self._assumed: dict[ObjectKey, M] = {}
        self._restored: dict[ObjectKey, tuple[int, float]] = {}
        """The versions of objects about which an assumption was forgotten, and when (`Clock.monotonic`)."""

    def real(self, name: str, namespace: str = "") -> M | None:
        """Return the object that the watch shows."""
        return self._handle.lister(self._kind).get(name, namespace)

    def get(self, name: str, namespace: str = "") -> M | None:
        """Return the assumed object, else the one of the watch; None when it does not exist."""
        found = self.real(name, namespace)
        return found if found is None or not self._assumed else self._over(found)

    def list(self) -> list[M]:
        found = self._handle.lister(self._kind).list()
        return [self._over(obj) for obj in found] if self._assumed else found

    def assume(self, obj: M) -> None:
        """Assume `obj`, a changed copy of the watched object, with its resourceVersion."""
        self._assumed[key_of(obj)] = obj

    def restore(self, name: str, namespace: str = "") -> None:
        """Forget the assumption, if any."""
        key = ObjectKey(namespace, name)
        live, assumed = self.real(name, namespace), self._assumed.pop(key, None)
        if live is not None and assumed is not None:
            version = resource_version_of(live)
            if version == resource_version_of(assumed):
                self._drop_changed()
                self._restored[key] = version, self._handle.clock.monotonic()

    def silent_releases(self) -> dict[ObjectKey, float]:
        """Return the objects that an assumption no longer changes, and since when, if no event said so.

        The times are seconds of `Clock.monotonic`: they are compared with those of waiting pods, whatever the
        wall clock does.

        Pods that these objects did not suit are left to the flush (kube-scheduler 1.36, AssumeCache.Restore
        and EventsToRegister of VolumeBinding). The next event of an object wakes them.
        """
        self._drop_changed()
        return {key: time for key, (_, time) in self._restored.items()}

    def _drop_changed(self) -> None:
        """Drop the objects that have had an event since."""
        for key, (version, _) in list(self._restored.items()):
            live = self.real(key.name, key.namespace)
            if live is None or resource_version_of(live) != version:
                del self._restored[key]

    def _over(self, found: M) -> M:
        key = key_of(found)
        assumed = self._assumed.get(key)
        if assumed is None:
            return found
        if resource_version_of(found) > resource_version_of(assumed):
            del self._assumed[key]
            return found
        return assumed
