"""The lanes of objects: how long each of their states lasted. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nominee.lab.history.object_history import Entry
from nominee.lab.history.process_logs import LogLine
from nominee.lab.timeline.rows import bars as values_of


@dataclass(slots=True)
class Bar:
    """A value of a row from one revision to another; `end` None: until the end of the history."""

    value: str
    begin: float
    end: float | None = None


@dataclass(slots=True)
class Lane:
    """An object: its entries, and the bars of its rows."""

    subject: str
    entries: list[Entry] = field(default_factory=list)
    rows: dict[str, list[Bar]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Add a revision, which ends the bars whose value it changes."""
        self.entries.append(entry)
        values = {} if entry.revision.object is None else values_of(entry.revision.object)
        for name in dict.fromkeys([*self.rows, *values]):
            bars, value = self.rows.setdefault(name, []), values.get(name, "")
            last = bars[-1] if bars and bars[-1].end is None else None
            if last is not None and last.value == value:
                continue
            if last is not None:
                last.end = entry.time
            if value:
                bars.append(Bar(value, entry.time))

    @property
    def shown_rows(self) -> Mapping[str, Sequence[Bar]]:
        """Return the rows without conditions that were False all the time."""
        return {
            name: bars
            for name, bars in self.rows.items()
            if any(not bar.value.startswith("False") for bar in bars) or len(bars) > 1
        }


def lanes(entries: Iterable[Entry | LogLine]) -> list[Lane]:
    """Return the lanes of entries, in the order of their first revisions; Events have none."""
    found: dict[str, Lane] = {}
    for entry in entries:
        if isinstance(entry, Entry) and not entry.event:
            found.setdefault(entry.revision.subject, Lane(entry.revision.subject)).add(entry)
    return list(found.values())
