"""The document of a time line: rows by revision, marks and the state of the processes, as the page reads it.

The page folds the rows up to the moment that it shows; `docs/design/028-dashboard.md` has the format. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.revision import Revision
from nominee.lab.history.writers import Writer, manager_of
from nominee.lab.timeline.json_text import compact
from nominee.lab.timeline.marks import Mark
from nominee.lab.timeline.pod_rows import pod_row
from nominee.lab.timeline.rows import row
from nominee.machinery.api.kinds import EVENT, LEASE, POD
from nominee.machinery.wire import envelope
from nominee.machinery.wire.values.scalars import Json

API_VERSION: Final = "dashboard.nominee.dev/v1"
KIND: Final = "TimeLine"
BYTES_MAX: Final = 256 << 20
"""Of values and rows that are kept: some 100,000 revisions of pods. Older ones become the state before."""
_ITEM_BYTES: Final = 1000
"""What a revision takes besides its value and its row."""
_HEARTBEATS: Final = "kube-node-lease"
_STATE: Final = ',"state":true}'
_NO_WRITER: Final = Writer()


@dataclass(frozen=True, slots=True)
class Item:
    """A revision with its place among all; `text` is its JSON, "" for one that the page does not show."""

    number: int
    revision: Revision
    text: str

    @property
    def size(self) -> int:
        """Return the bytes that it takes, about."""
        value = self.revision.value
        return _ITEM_BYTES + len(self.text) + (0 if value is None else len(value.data))


@dataclass(slots=True)
class TimeLine:
    """The newest revisions of a history, and the state before them."""

    title: str
    source: str
    """live, directory, file or page."""
    bytes_max: int = BYTES_MAX
    coverage: Coverage = field(default_factory=Coverage)
    left_out: int = 0
    end: int = 0
    """The newest revision."""
    count: int = 0
    """Revisions so far: the number of the newest item."""
    _before: dict[str, Item] = field(default_factory=dict)
    _items: deque[Item] = field(default_factory=deque)
    _bytes: int = 0

    def add(self, revision: Revision, writer: Writer | None = None) -> None:
        """Add a revision; heartbeats of nodes are left out.

        `writer` is the one that an API server has logged, if it is known.
        """
        self.end = max(self.end, revision.revision)
        if revision.kind is LEASE and revision.namespace == _HEARTBEATS:
            return
        self.count += 1
        item = Item(self.count, revision, _text(revision, writer) if _is_shown(revision) else "")
        if revision.previous_value is not None:
            revision.previous_value.forget()
        self._items.append(item)
        self._bytes += item.size
        while self._bytes > self.bytes_max and len(self._items) > 1:
            self._leave_out()

    def items(self) -> Iterator[Item]:
        """Yield the state before the newest revisions, and these."""
        yield from sorted(self._before.values(), key=lambda each: each.revision.revision)
        yield from self._items

    def after(self, number: int) -> list[Item] | None:
        """Return the items behind the one with this number; None if some of them are left out."""
        first = self._items[0].number if self._items else self.count + 1
        if number + 1 < first:
            return None
        return list(islice(self._items, number + 1 - first, None))

    def number_of(self, revision: int) -> int:
        """Return the number of the newest item whose revision is not newer than this one."""
        older = (item.number for item in reversed(self._items) if item.revision.revision <= revision)
        return next(older, self._items[0].number - 1 if self._items else self.count)

    def text(
        self,
        *,
        marks: Iterable[Mark] = (),
        parts: Mapping[str, str] = MappingProxyType({}),
        details: Mapping[str, Json] | None = None,
        read_only: bool = True,
    ) -> str:
        """Return the document as JSON; `parts` are the JSON of components, queues and autoscaler."""
        items = [item for item in self.items() if item.text]
        shown = sorted(marks, key=lambda mark: mark.time)
        times = [item.revision.time for item in items if item.revision.time] + [mark.time for mark in shown]
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
                "end": self.end,
                "gaps": self.coverage.gaps,
                "left_out": self.left_out,
            },
            "marks": [mark.as_json() for mark in shown],
            "details": details,
        }
        more = {"components": "[]", "queues": "null", "autoscaler": "null", **parts}
        more["revisions"] = f"[{','.join(item.text for item in items)}]"
        rest = ",".join(f'"{name}":{text}' for name, text in more.items())
        return f"{compact(head)[:-1]},{rest}}}"

    def _leave_out(self) -> None:
        """Make the oldest revision part of the state before the others."""
        oldest = self._items.popleft()
        self._bytes -= oldest.size
        self.left_out += 1
        key = oldest.revision.key
        if oldest.revision.value is None:
            self._before.pop(key, None)
            return
        text = oldest.text
        if text and not text.endswith(_STATE):
            text = f"{text[:-1]}{_STATE}"
        elif not text and key in self._before:  # a lease whose holder is the same
            text = self._before[key].text
        revision = replace(oldest.revision, previous_value=None, is_state=True)
        self._before[key] = Item(oldest.number, revision, text)


def timeline(
    title: str, source: str, revisions: Iterable[Revision], writers: Mapping[int, Writer] | None = None
) -> TimeLine:
    """Return the time line of a history; `writers` by revision, as API servers have logged them."""
    found, logged = TimeLine(title, source), writers or {}
    for revision in revisions:
        found.add(revision, logged.get(revision.revision))
    return found


def _is_shown(revision: Revision) -> bool:
    """Return whether the page shows a revision: no Event, and of leases a new holder only."""
    if revision.kind is not LEASE or not revision.is_readable:
        return revision.kind is not None and revision.kind is not EVENT
    after, before = revision.after(LEASE), revision.before(LEASE)
    return after is None or before is None or after.spec.holderIdentity != before.spec.holderIdentity


def _text(revision: Revision, writer: Writer | None) -> str:
    value = revision.value
    values = pod_row(value.data) if revision.kind is POD and value is not None else ""
    made = writer or _NO_WRITER
    if not values:
        try:
            made = writer or manager_of(revision)
            values = "null" if revision.object is None else compact(row(revision.object))
        except envelope.EnvelopeError:  # a value of another program
            made, values = _NO_WRITER, "{}"
    head: dict[str, Json] = {
        "r": revision.revision,
        "t": revision.time,
        "k": revision.kind.kind if revision.kind is not None else "",
        "ns": revision.namespace,
        "n": revision.name,
        "w": "" if made == _NO_WRITER else str(made),
    }
    return f'{compact(head)[:-1]},"row":{values}{_STATE if revision.is_state else "}"}'
