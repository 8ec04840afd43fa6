"""Objects of a name that was in use before: a patch that was meant for the former one may reach the new one."""

from __future__ import annotations

from typing import Final

from cachetools import LRUCache

from nominee.lab.history.revision import Revision

LATE_SECONDS: Final = 15.0
"""How long after the deletion of an object a patch that was meant for it may arrive."""
_OBJECTS_MAX: Final = 1_000
FORMER_OBJECT: Final = {
    "former-object": f"one of the name was deleted within {LATE_SECONDS:.0f} s; a patch without uid may "
    "have been meant for it"
}
"""The exception of the checkers that ask `FormerObjects`."""


class FormerObjects:
    """The deletions of a while.

    The scheduler's patch of a status has no uid. If the pod is created again before it arrives, the new
    one gets what was found for the former one. Source: kube-scheduler 1.36, util.PatchPodStatus.
    """

    def __init__(self) -> None:
        self._deleted: LRUCache[str, float] = LRUCache(_OBJECTS_MAX)
        """When each object was deleted, by key."""

    def observe(self, revision: Revision) -> None:
        """Note a deletion."""
        if revision.value is None:
            self._deleted[revision.key] = revision.time

    def may_reach(self, revision: Revision) -> bool:
        """Return whether this write may have been meant for a former object of the name."""
        deleted = self._deleted.get(revision.key)
        return deleted is not None and revision.time - deleted <= LATE_SECONDS
