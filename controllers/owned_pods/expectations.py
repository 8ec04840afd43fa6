"""A controller's creations and deletions of pods that the watch has not shown yet. Pure.

Source: kube-controller-manager 1.36, controller_utils (UIDTrackingControllerExpectations).
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.objects import ObjectKey

EXPECTATION_SECONDS_MAX: Final = 300.0
"""How long to wait for the watch to show creations and deletions; later they are ignored."""


class Expectations:
    """The pods that the last reconciliations created and deleted, by owner, until the watch shows it.

    Until then the informer is behind, and a reconciliation would create pods twice.
    """

    def __init__(self) -> None:
        self._creations: dict[ObjectKey, set[str]] = {}
        self._deletions: dict[ObjectKey, set[str]] = {}
        self._since: dict[ObjectKey, float] = {}
        self._versions: dict[ObjectKey, int] = {}

    def expect(
        self, key: ObjectKey, now: float, *, created: str = "", deleted: str = "", version: int = 0
    ) -> None:
        """Expect a pod that was created, at a resourceVersion, or one that was deleted."""
        self._since[key] = now
        if created:
            self._creations.setdefault(key, set()).add(created)
            self._versions[key] = max(version, self._versions.get(key, 0))
        if deleted:
            self._deletions.setdefault(key, set()).add(deleted)

    def note_creation(self, key: ObjectKey, uid: str) -> None:
        self._creations.get(key, set()).discard(uid)

    def note_deletion(self, key: ObjectKey, uid: str) -> None:
        self._deletions.get(key, set()).discard(uid)

    def note_version(self, key: ObjectKey, version: int) -> None:
        """Note that the watch has come to a resourceVersion: pods of before that it lacks are gone."""
        if self._versions.get(key, 0) <= version:
            self._creations.pop(key, None)

    def satisfied(self, key: ObjectKey, now: float) -> bool:
        if not self._creations.get(key) and not self._deletions.get(key):
            return True
        return now - self._since.get(key, now) > EXPECTATION_SECONDS_MAX

    def forget(self, key: ObjectKey) -> None:
        for held in (self._creations, self._deletions, self._since, self._versions):
            held.pop(key, None)

    def outstanding(self) -> list[ObjectKey]:
        """Return the owners of which a creation or deletion has not been seen, however long ago."""
        return [key for key in self._since if self._creations.get(key) or self._deletions.get(key)]
