"""Objects of a name that another one had: a patch that was meant for that one may reach them."""

from __future__ import annotations

from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.revision import Revision

LATE_SECONDS: Final = 15.0
"""How long after the deletion of an object a patch that was meant for it may arrive."""
_OBJECTS_MAX: Final = 1_000
FORMER_OBJECT: Final = {
    "former-object": f"one of the name was deleted within {LATE_SECONDS:.0f} s; a patch without uid may "
    "have been meant for it"
}
FORMER_POD: Final = {
    "former-pod": f"a pod of the name was deleted within {LATE_SECONDS:.0f} s; a controller whose cache has "
    "it removes the reservation of the new one"
}
"""The exceptions of the checkers that ask `FormerObjects`."""


class FormerObjects:
    """The deletions of a while.

    The scheduler's patch of a status has no uid. If the pod is created again before it arrives, the new
    one gets what was found for the former one. The controller of claims compares the uids of a reservation
    and of the pod in its cache. Source: kube-scheduler 1.36, util.PatchPodStatus; resourceclaim, syncClaim.
    """

    def __init__(self) -> None:
        self._deleted: LRUCache[str, float] = LRUCache(_OBJECTS_MAX)
        """When each object was deleted, by key."""

    def observe(self, revision: Revision) -> None:
        """Note a deletion."""
        if revision.value is None:
            self._deleted[revision.key] = revision.time

    def may_reach(self, revision: Revision, served_time: ServedTime) -> bool:
        """Return whether this write may have been meant for a former object of the name."""
        return self.was_deleted(revision.key, revision.time, served_time)

    def was_deleted(self, key: str, now: float, served_time: ServedTime) -> bool:
        """Return whether an object of this key was deleted shortly before."""
        deleted = self._deleted.get(key)
        return deleted is not None and served_time.between(deleted, now) <= LATE_SECONDS
