"""The document of a time line: rows by revision, marks and the state of the processes, as the page reads it.

The page folds the rows up to the moment that it shows; `docs/design/028-dashboard.md` has the format. No I/O.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.revision import Revision
from nominee.lab.history.writers import Writer, manager_of
from nominee.lab.timeline.marks import Mark
from nominee.lab.timeline.rows import row
from nominee.machinery.api.kinds import EVENT, LEASE
from nominee.machinery.wire import envelope
from nominee.machinery.wire.values.scalars import Json

API_VERSION: Final = "dashboard.nominee.dev/v1"
KIND: Final = "TimeLine"
REVISIONS_MAX: Final = 200_000
"""Revisions that are kept: some 70 MB. Older ones become the state at the beginning."""
_HEARTBEATS: Final = "kube-node-lease"
_STATE: Final = ',"state":true}'


@dataclass(frozen=True, slots=True)
class Item:
    """A revision of the document; `text` is its JSON."""

    revision: int
    time: float
    key: str
    text: str
    is_deletion: bool


@dataclass(slots=True)
class TimeLine:
    """The newest revisions of a history, and the state before them."""

    title: str
    source: str
    """live, directory, file or page."""
    revisions_max: int = REVISIONS_MAX
    coverage: Coverage = field(default_factory=Coverage)
    left_out: int = 0
    _before: dict[str, Item] = field(default_factory=dict)
    _items: deque[Item] = field(default_factory=deque)

    def add(self, revision: Revision, writer: Writer | None = None) -> Item | None:
        """Add a revision and return it; None for one that the page does not show.

        `writer` is the one that an API server has logged, if it is known.
        """
        if not _is_shown(revision):
            return None
        item = _item(revision, writer)
        self._items.append(item)
        if len(self._items) > self.revisions_max:
            self._leave_out()
        return item

    def items(self) -> list[Item]:
        """Return the state before the newest revisions, and these."""
        return [*sorted(self._before.values(), key=lambda each: each.revision), *self._items]

    def text(
        self,
        *,
        marks: Iterable[Mark] = (),
        components: Sequence[Json] = (),
        queues: Json = None,
        autoscaler: Json = None,
        details: Mapping[str, Json] | None = None,
        read_only: bool = True,
    ) -> str:
        """Return the document as JSON."""
        items, shown = self.items(), sorted(marks, key=lambda mark: mark.time)
        times = [item.time for item in items if item.time] + [mark.time for mark in shown]
        head = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "title": self.title,
            "source": self.source,
            "read_only": read_only,
            "begin": min(times, default=0.0),
            "end": max(times, default=0.0),
            "coverage": {
                "begin": self.coverage.begin,
                "end": self.coverage.end,
                "gaps": self.coverage.gaps,
                "left_out": self.left_out,
            },
            "marks": [mark.as_json() for mark in shown],
            "components": components,
            "queues": queues,
            "autoscaler": autoscaler,
            "details": details,
        }
        revisions = ",".join(item.text for item in items)
        return f'{compact(head)[:-1]},"revisions":[{revisions}]}}'

    def _leave_out(self) -> None:
        """Make the oldest revision part of the state before the others."""
        oldest = self._items.popleft()
        self.left_out += 1
        if oldest.is_deletion:
            self._before.pop(oldest.key, None)
            return
        is_state = oldest.text.endswith(_STATE)
        text = oldest.text if is_state else f"{oldest.text[:-1]}{_STATE}"
        self._before[oldest.key] = replace(oldest, text=text)


def timeline(
    title: str, source: str, revisions: Iterable[Revision], writers: Mapping[int, Writer] | None = None
) -> TimeLine:
    """Return the time line of a history; `writers` by revision, as API servers have logged them."""
    found, logged = TimeLine(title, source), writers or {}
    for revision in revisions:
        found.add(revision, logged.get(revision.revision))
        found.coverage.end = max(found.coverage.end, revision.revision)
    return found


def compact(document: Json) -> str:
    """Return a document as JSON without spaces."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _is_shown(revision: Revision) -> bool:
    """Return whether the page shows a revision: no Event, no heartbeat, and of leases a new holder only."""
    if revision.kind is None or revision.kind is EVENT:
        return False
    if revision.kind is not LEASE:
        return True
    if revision.namespace == _HEARTBEATS:
        return False
    after, before = revision.after(LEASE), revision.before(LEASE)
    return after is None or before is None or after.spec.holderIdentity != before.spec.holderIdentity


def _item(revision: Revision, writer: Writer | None) -> Item:
    try:
        made = writer or manager_of(revision)
        values: Json = None if revision.object is None else row(revision.object)
    except envelope.EnvelopeError:  # a value of another program
        made, values = Writer(), {}
    document: dict[str, Json] = {
        "r": revision.revision,
        "t": revision.time,
        "k": revision.kind.kind if revision.kind is not None else "",
        "ns": revision.namespace,
        "n": revision.name,
        "w": "" if made == Writer() else str(made),
        "row": values,
    }
    text = compact(document)
    if revision.is_state:
        text = f"{text[:-1]}{_STATE}"
    return Item(revision.revision, revision.time, revision.key, text, revision.value is None)
