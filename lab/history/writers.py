"""Who made a write, as far as the product keeps it: the API server's log, or else managedFields. No I/O.

A log line of the API server (`--log-level=debug`) names user, verb and client. managedFields name the manager
only, and only of objects that are tracked; a write that they do not show has no known writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import meta

UNKNOWN: Final = "writer unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The writer of a revision; a field is "" if it is unknown. `verb` is as `patch pods/status`."""

    user: str = ""
    verb: str = ""
    client: str = ""
    """The user agent: name and version of the process."""
    manager: str = ""
    """The field manager and its operation: `kubectl (Update)`."""

    def __str__(self) -> str:
        if self.user:
            return f"{self.verb} by {self.user} ({self.client or 'no user agent'})"
        return f"by manager {self.manager}" if self.manager else UNKNOWN


def manager_of(revision: Revision) -> Writer:
    """Return the writer that the managedFields of a write show: the managers whose entries are newer.

    A manager that loses fields to another one keeps its time. Times are whole seconds: two writes of one
    manager within a second may have the same one, and then their fields decide.
    """
    if revision.is_state or revision.value is None or revision.kind is None:
        return Writer()
    after = _entries(revision.object)
    if not after:
        return Writer()
    before = _entries(revision.previous)
    newer = [
        entry for entry in after if all(entry.time != old.time or not _same(entry, old) for old in before)
    ]
    changed = newer or [entry for entry in after if entry not in before]
    names = [
        f"{entry.manager} ({entry.operation}{f' {entry.subresource}' if entry.subresource else ''})"
        for entry in changed
    ]
    return Writer(manager=" or ".join(dict.fromkeys(names)))


def _entries(obj: Message | None) -> list[meta.ManagedFieldsEntry]:
    return [] if obj is None else list(metadata_of(obj).managedFields)


def _same(entry: meta.ManagedFieldsEntry, other: meta.ManagedFieldsEntry) -> bool:
    """Return whether two entries belong to one manager."""
    return (entry.manager, entry.operation, entry.subresource) == (
        other.manager,
        other.operation,
        other.subresource,
    )
