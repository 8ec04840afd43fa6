"""Every write has a higher resourceVersion than all writes before it."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.revision import Revision


class ResourceVersions(Checker):
    """Checks the revisions themselves; no object is decoded.

    Keys of one etcd transaction, as the objects of an expired lease, share their revision.
    """

    about = Invariant(
        name="resource-versions-increase",
        description="A write has a higher resourceVersion than every write before it.",
        checks="writes",
        exceptions={"one-transaction": "different keys that one etcd transaction writes share a revision"},
        counts={"missing": "revisions that are not in the history"},
    )
    kinds = None

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._newest: Revision | None = None
        self._keys_of_newest: set[str] = set()
        self._is_contiguous = True

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Compare a write with the newest one before it."""
        newest = self._newest
        if newest is not None and not self._is_later(revision, newest):
            yield self.violation(
                f"etcd is at revision {revision.revision} after revision {newest.revision}: it lost what was "
                "written between",
                newest,
                revision,
            )
            newest = self._newest = None
        if revision.is_state:
            self._is_contiguous = False  # the next write may have any later revision
            return
        self.checked += 1
        if newest is not None and self._is_contiguous:
            self.count("missing", max(revision.revision - newest.revision - 1, 0))
        if newest is None or newest.revision != revision.revision:
            self._keys_of_newest.clear()
        self._keys_of_newest.add(revision.key)
        self._newest = revision
        self._is_contiguous = True

    def _is_later(self, revision: Revision, newest: Revision) -> bool:
        if revision.revision != newest.revision:
            return revision.revision > newest.revision
        if revision.is_state:
            return True
        if revision.key in self._keys_of_newest:
            return False
        self.allow("one-transaction")
        return True
