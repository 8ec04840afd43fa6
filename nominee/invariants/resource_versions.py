"""Every write has a higher resourceVersion than all writes before it."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.history.revision import Revision
from nominee.invariants.checker import Checker, Invariant, Violation
from nominee.invariants.evidence import Settings


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

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._newest: Revision | None = None
        self._keys_of_newest: set[str] = set()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Compare a write with the newest one before it."""
        if revision.is_state:
            self._newest = None  # what comes next may be any later revision
            return
        self.checked += 1
        newest, self._newest = self._newest, revision
        if newest is None or revision.revision > newest.revision:
            if newest is not None:
                self.count("missing", revision.revision - newest.revision - 1)
            self._keys_of_newest = {revision.key}
        elif revision.revision == newest.revision and revision.key not in self._keys_of_newest:
            self.allow("one-transaction")
            self._keys_of_newest.add(revision.key)
        else:
            yield self.violation(
                f"revision {revision.revision} was written after revision {newest.revision}: etcd lost what "
                "was written between",
                newest,
                revision,
            )
