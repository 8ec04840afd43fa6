"""The evidence of a cell on the page: the printed steps, the logs and the history of its objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from nominee.lab.history.changes import changed_fields
from nominee.lab.history.history_file import NAME, HistoryFileError, HistoryReader
from nominee.lab.history.revision import Revision
from nominee.lab.skew.cells.cell_run import LOGS, STEPS
from nominee.lab.skew.matrix.model import JsonObject
from nominee.lab.timeline.report import LINE_CHARACTERS_MAX, tail
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.envelope import EnvelopeError

STEP_LINES_MAX = 400
REVISIONS_MAX = 400
CHANGES_MAX = 8
"""Fields of one write that are shown."""
_SHOWN: tuple[AnyKind, ...] = (
    kinds.POD,
    kinds.NODE,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.LEASE,
)
_UNINTERESTING = ("metadata.resourceVersion", "metadata.generation", "Time")


def read(folder: Path) -> JsonObject:
    """Return the evidence in a cell's directory, within limits."""
    return {
        "steps": tail(folder / STEPS, STEP_LINES_MAX),
        "logs": {log.stem: tail(log) for log in sorted((folder / LOGS).glob("*.log"))},
        "history": _history(folder / NAME),
    }


def _history(path: Path) -> list[str]:
    """Return the lines of a history file; the last one says why later writes are missing, if they are."""
    reader = HistoryReader(path)
    lines: list[str] = []
    try:
        lines.extend(_lines(reader))
    except FileNotFoundError:
        return []
    except (OSError, HistoryFileError) as error:
        return [*lines, str(error)]
    return [*lines, reader.missing_rest] if reader.missing_rest else lines


def _lines(revisions: Iterable[Revision]) -> Iterator[str]:
    """Yield a line for each write of a pod, node or volume that changed more than a heartbeat."""
    found = (line for revision in revisions if (line := _line(revision)))
    return islice(found, REVISIONS_MAX)


def _line(revision: Revision) -> str:
    if revision.kind not in _SHOWN or revision.is_state:
        return ""
    head = f"{revision.revision} {revision.subject}"
    if revision.value is None:
        return f"{head} deleted"
    try:
        after, before = revision.object, revision.previous
    except EnvelopeError:
        return f"{head} cannot be decoded"
    if before is None or after is None:
        return f"{head} created"
    changes = [
        str(each)
        for each in changed_fields(before, after)
        if not any(name in each.path for name in _UNINTERESTING)
    ]
    if not changes:
        return ""
    more = ["..."] if len(changes) > CHANGES_MAX else []
    return f"{head} {'; '.join([*changes[:CHANGES_MAX], *more])}"[:LINE_CHARACTERS_MAX]
