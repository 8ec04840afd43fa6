"""The history of objects: their revisions with writers, the events about them, and log lines that name them.

Pure: revisions and log lines in, entries out; `lines` and `as_json` render them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from nominee.lab.history.changes import FIELDS_MAX, FieldChange, changed_fields, describe, verb
from nominee.lab.history.history_file import NAME
from nominee.lab.history.process_logs import LogLine, writers
from nominee.lab.history.revision import Revision
from nominee.lab.history.writers import Writer, manager_of
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.wire.values.scalars import Json

_NOT_UNASKED: Final = frozenset({kinds.LEASE, kinds.EVENT})
"""They are no part of a history unless they are named: heartbeats, and repetitions of what others say."""
_FIELDS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Target:
    """An object that is asked for; namespace "" is any."""

    kind: AnyKind
    namespace: str
    name: str

    def matches(self, kind: AnyKind | None, namespace: str, name: str) -> bool:
        """Return whether an object is this one."""
        return kind is self.kind and name == self.name and self.namespace in ("", namespace)


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a history: those that are named, or all of a namespace ("": of the cluster)."""

    targets: Sequence[Target] = ()
    namespace: str = ""
    since: float = 0.0

    def has(self, kind: AnyKind | None, namespace: str, name: str) -> bool:
        """Return whether an object is selected."""
        if self.targets:
            return any(target.matches(kind, namespace, name) for target in self.targets)
        return kind is not None and kind not in _NOT_UNASKED and self.namespace in ("", namespace)

    def may_show(self, revision: Revision) -> bool:
        """Return whether a revision is shown, unless it is too early, or is an Event about something else."""
        is_event = revision.kind is kinds.EVENT and bool(self.targets)
        return is_event or self.has(revision.kind, revision.namespace, revision.name)

    def has_line(self, line: LogLine) -> bool:
        """Return whether a line of a log is about a named object; without names only marks are."""
        return line.is_mark or any(
            line.is_about(each.kind.kind, each.namespace, each.name) for each in self.targets
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A revision of a selected object with its writer; of an Event, `event` is its text."""

    revision: Revision
    writer: Writer
    event: str = ""

    @property
    def time(self) -> float:
        """Return the revision's time."""
        return self.revision.time

    @property
    def changes(self) -> list[FieldChange]:
        """Return the changed fields."""
        return changed_fields(self.revision.previous, self.revision.object)


def command(directory: str, subjects: Iterable[str]) -> str:
    """Return the command that shows objects (`Pod default/a`) in the history that a run left."""
    names = ["/".join(subject.split(" ", 1)) for subject in subjects]
    return shlex.join(["nominee", "history", str(Path(directory) / NAME), *names])


def entries(
    revisions: Iterable[Revision], selection: Selection, log: Sequence[LogLine] = ()
) -> list[Entry | LogLine]:
    """Return the selected revisions, the events about them and the lines of the log, by time.

    A write that an API server has logged is placed where the history has it, not at the line's time.
    """
    logged = writers(log)
    found: list[Entry | LogLine] = []
    for revision in revisions:
        if revision.time < selection.since:
            continue
        event = (
            ""
            if selection.has(revision.kind, revision.namespace, revision.name)
            else _event(revision, selection)
        )
        if event or selection.has(revision.kind, revision.namespace, revision.name):
            found.append(Entry(revision, logged.get(revision.revision) or manager_of(revision), event))
    found += [line for line in log if line.time >= selection.since and selection.has_line(line)]
    return sorted(found, key=lambda each: each.time)


def _event(revision: Revision, selection: Selection) -> str:
    """Return the text of an Event about a named object; "" for other writes, and for its expiry."""
    if revision.kind is not kinds.EVENT or not selection.targets or revision.value is None:
        return ""
    if not revision.value.is_readable:
        return ""
    event = cast("core.Event", revision.object)
    about = event.involvedObject
    kind = kinds.by_kind(about.apiVersion or "v1", about.kind)
    if not selection.has(kind, about.namespace, about.name):
        return ""
    source = event.reportingComponent or event.source.component
    return (
        f"Event of {about.kind} {about.namespace}/{about.name} by {source}: {event.reason}: {event.message}"
    )


def lines(found: Iterable[Entry | LogLine]) -> Iterator[str]:
    """Yield the entries for a person: a headline, and the changed fields below it."""
    for entry in found:
        if isinstance(entry, LogLine):
            yield f"{rfc3339_micro(entry.time)}: {entry.text}"
        elif entry.event:
            yield f"revision {entry.revision.revision}, {rfc3339_micro(entry.time)}: {entry.event}"
        else:
            writer = "" if entry.revision.is_state else str(entry.writer)
            is_new = entry.revision.previous_value is None
            first, *rest = describe(entry.revision, writer, fields_max=FIELDS_MAX if is_new else _FIELDS_MAX)
            yield first
            yield from (f"    {line}" for line in rest)


def as_json(found: Iterable[Entry | LogLine]) -> list[Mapping[str, Json]]:
    """Return the entries as JSON; `writer` is null where it is unknown."""
    return [_line_json(entry) if isinstance(entry, LogLine) else _json(entry) for entry in found]


def _line_json(line: LogLine) -> dict[str, Json]:
    about = {"process": line.process, "message": line.message, "fields": dict(line.fields)}
    return {"time": rfc3339_micro(line.time), "log": about}


def _json(entry: Entry) -> dict[str, Json]:
    revision, writer = entry.revision, entry.writer
    document: dict[str, Json] = {
        "time": rfc3339_micro(revision.time) if revision.time else None,
        "revision": revision.revision,
        "kind": revision.kind.kind if revision.kind is not None else "",
        "namespace": revision.namespace,
        "name": revision.name,
        "change": verb(revision),
        "writer": None
        if writer == Writer()
        else {"user": writer.user, "verb": writer.verb, "client": writer.client, "manager": writer.manager},
    }
    if entry.event:
        return {**document, "event": entry.event}
    deleted = revision.value is None and not revision.is_state
    changes = [] if deleted else entry.changes
    return {
        **document,
        "fields": [{"path": each.path, "old": each.old, "new": each.new} for each in changes],
    }
