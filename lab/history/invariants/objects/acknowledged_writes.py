"""No write that the API server has acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings, Evidence
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of


class AcknowledgedWrites(Checker):
    """Looks for each acknowledged write in the history: its key, its revision, the object's uid.

    The writes come from the client that made them (`Evidence.acknowledged`).
    """

    about = Invariant(
        name="acknowledged-writes-are-kept",
        description="A write that the API server has acknowledged is in etcd.",
        checks="acknowledged writes",
        exceptions={"before-history": "the write is older than the history"},
    )
    kinds = None

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._writes: dict[str, _Writes] = {}
        self._begin: int | None = None

    def unchecked(self, evidence: Evidence) -> str:
        """Return the reason where no client recorded its writes."""
        recorded = self.settings.records_acknowledged and evidence.acknowledged is not None
        return "" if recorded else "no client recorded which writes were acknowledged"

    def observes(self, kind: AnyKind | None) -> bool:
        """Return whether the writes of a kind are kept: all, if there will be something to compare."""
        return self.settings.records_acknowledged and kind is not None

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a write."""
        if not revision.is_state and self._begin is None:
            self._begin = revision.revision
        writes = self._writes.get(revision.key)
        if writes is None:
            writes = self._writes[revision.key] = _Writes(revision)
        writes.note(revision)
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Look for the acknowledged writes."""
        for write in evidence.acknowledged or ():
            self.checked += 1
            problem = self._problem(write)
            if problem:
                writes = self._writes.get(write.kind.key(write.namespace, write.name))
                shown_by = () if writes is None else (writes.newest,)
                name = f"{write.namespace}/{write.name}" if write.namespace else write.name
                yield self.violation(problem, *shown_by, objects=(f"{write.kind.kind} {name}",))

    def _problem(self, write: Acknowledged) -> str:
        writes = self._writes.get(write.kind.key(write.namespace, write.name))
        if write.deleted:
            exists = writes is not None and writes.exists_undeleted(write.uid)
            return "the deletion was acknowledged, and the object has no deletionTimestamp" if exists else ""
        version = write.resource_version
        uid = None if writes is None else writes.uid_at(version)
        if uid is None:
            if self._begin is None or version < self._begin:
                self.allow("before-history")
                return ""
            return f"resourceVersion {version} was acknowledged, and etcd has no such write of the object"
        if uid != write.uid:
            if writes is not None and writes.was_ended_at(version, write.uid):
                return ""
            stored = f"the object with uid {uid}" if uid else "a deletion"
            return (
                f"resourceVersion {version} was acknowledged for uid {write.uid}, and etcd has {stored} there"
            )
        return ""


class _Writes:
    """The writes of one key: the uid at each revision, "" for a deletion."""

    __slots__ = ("_removals", "_uids", "newest")

    def __init__(self, first: Revision) -> None:
        self.newest = first
        self._uids: dict[int, str] = {}
        self._removals: dict[int, Revision] = {}

    def note(self, revision: Revision) -> None:
        """Enter a write. A uid lasts from an object's creation to its deletion: no update is decoded."""
        former = self._uids.get(self.newest.revision, "")
        if revision.value is None:
            uid = ""
            self._removals[revision.revision] = revision
        elif revision.previous_value is not None and former and not revision.is_state:
            uid = former
        else:
            obj = revision.object
            uid = "" if obj is None else metadata_of(obj).uid
        self._uids[revision.revision] = uid
        self.newest = revision

    def uid_at(self, revision: int) -> str | None:
        """Return the uid that was written at a revision; None if nothing was."""
        return self._uids.get(revision)

    def was_ended_at(self, revision: int, uid: str) -> bool:
        """Return whether this write removed an object that was being deleted, as its last update does."""
        removed = self._removals[revision].previous if revision in self._removals else None
        metadata = metadata_of(removed) if removed is not None else None
        return metadata is not None and metadata.uid == uid and metadata.HasField("deletionTimestamp")

    def exists_undeleted(self, uid: str) -> bool:
        """Return whether the object exists at the end, and is not terminating."""
        obj = self.newest.object
        if obj is None:
            return False
        metadata = metadata_of(obj)
        return metadata.uid == uid and not metadata.HasField("deletionTimestamp")
