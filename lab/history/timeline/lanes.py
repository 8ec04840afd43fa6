"""The lanes of objects: how long each of their states lasted. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.object_history import Entry
from nominee.lab.history.process_logs import LogLine
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "phase": ("status", "phase"),
    "node": ("spec", "nodeName"),
    "nominated": ("status", "nominatedNodeName"),
    "holder": ("spec", "holderIdentity"),
    "replicas": ("spec", "replicas"),
    "terminating": ("metadata", "deletionTimestamp"),
}
"""Fields that have a row of bars besides the conditions, by the name of the row."""
_TAINTS: Final = "taints"


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
        values = {} if entry.revision.object is None else _values(codec.to_json(entry.revision.object))
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


def _values(document: Mapping[str, Json]) -> dict[str, str]:
    """Return the value of each row of an object's lane."""
    found = {}
    for name, path in _FIELDS.items():
        value: Json = document
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None and value != "":
            found[name] = str(value)
    taints = document.get("spec", {}).get("taints", ()) if isinstance(document.get("spec"), Mapping) else ()
    if taints:
        found[_TAINTS] = ", ".join(f"{each['key']}:{each['effect']}" for each in taints)
    for condition in document.get("status", {}).get("conditions", ()) or ():
        reason = condition.get("reason", "")
        found[str(condition.get("type"))] = f"{condition.get('status')} {reason}".rstrip()
    return found
