"""The page of a time line: one file that needs no server and no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from nominee.lab.history import object_history
from nominee.lab.history.changes import shown_object
from nominee.lab.history.object_history import Entry
from nominee.lab.history.process_logs import LogLine
from nominee.lab.reports import html
from nominee.lab.timeline.lanes import Bar, lanes
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.wire.values.scalars import Json

ENTRIES_MAX: Final = 3000
"""The newest entries are shown: a page with more is too large for a browser."""
_TEMPLATE: Final = Path(__file__).with_name("page.html")
_STYLE: Final = _TEMPLATE.with_suffix(".css")
_TICKS: Final = 10
_NOMINATED: Final = frozenset({"nominated", "node", "terminating", "phase"})


class _Scale:
    """Places on the time axis, in percent of its width."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.seconds = begin, max(end - begin, 0.001)

    def at(self, time: float) -> float:
        """Return the place of a time."""
        return min(max(100 * (time - self.begin) / self.seconds, 0.0), 100.0)


def page(title: str, entries: Sequence[Entry | LogLine], end: float) -> str:
    """Return the page of a history's entries, in the order of their times; `end` is the history's."""
    shown = entries[-ENTRIES_MAX:]
    times = [entry.time for entry in shown if isinstance(entry, Entry)] or [end]
    marks = [entry for entry in shown if isinstance(entry, LogLine) and entry.time >= times[0]]
    scale = _Scale(min(times[0], *(each.time for each in marks)) if marks else times[0], max(end, times[-1]))
    numbers = {id(entry): str(number) for number, entry in enumerate(shown)}
    left = f" The first {len(entries) - len(shown)} are left out." if len(shown) < len(entries) else ""
    body = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        summary=escape(
            f"{rfc3339_micro(scale.begin)} and {scale.seconds:.3f} s from there; {len(shown)} entries.{left}"
        ),
        ticks="".join(_ticks(scale)),
        marks="".join(_marks(marks, numbers, scale)),
        lanes="\n".join(_lanes(shown, numbers, scale)),
        entries="\n".join(_list(shown, numbers)),
        dialog=html.dialog({numbers[id(entry)]: _item(entry) for entry in shown}),
    )
    return html.page(title, html.STYLE + _STYLE.read_text(encoding="utf-8"), body)


def _ticks(scale: _Scale) -> Iterator[str]:
    for number in range(_TICKS):
        yield f'<span style="left:{100 * number / _TICKS:g}%">{scale.seconds * number / _TICKS:.3g} s</span>'


def _marks(marks: Sequence[LogLine], numbers: dict[int, str], scale: _Scale) -> Iterator[str]:
    for line in marks:
        sort = "mark" if line.is_mark else "line"
        yield _point(numbers[id(line)], sort, line.text, scale.at(line.time))


def _lanes(entries: Sequence[Entry | LogLine], numbers: dict[int, str], scale: _Scale) -> Iterator[str]:
    for lane in lanes(entries):
        yield f"<h3>{escape(lane.subject)}</h3>"
        yield '<div class="row"><span class="label">revisions</span><div class="track">'
        for entry in lane.entries:
            text = f"revision {entry.revision.revision}: {entry.writer}"
            yield _point(numbers[id(entry)], "revision", text, scale.at(entry.time))
        yield "</div></div>"
        for name, bars in lane.shown_rows.items():
            yield f'<div class="row"><span class="label">{escape(name)}</span><div class="track">'
            yield from (_bar(name, bar, scale) for bar in bars)
            yield "</div></div>"


def _point(number: str, sort: str, text: str, place: float) -> str:
    label = escape(text)
    return (
        f'<button class="{sort}" data-item="{number}" style="left:{place:.4f}%" title="{label}" '
        f'aria-label="{label}"></button>'
    )


def _bar(name: str, bar: Bar, scale: _Scale) -> str:
    begin, end = scale.at(bar.begin), 100.0 if bar.end is None else scale.at(bar.end)
    status = bar.value.partition(" ")[0]
    sort = (
        name if name in _NOMINATED else status.lower() if status in ("True", "False", "Unknown") else "other"
    )
    text = escape(bar.value)
    return (
        f'<span class="bar {sort}" style="left:{begin:.4f}%;width:{max(end - begin, 0.0):.4f}%" '
        f'title="{escape(name)}: {text}">{text}</span>'
    )


def _list(entries: Sequence[Entry | LogLine], numbers: dict[int, str]) -> Iterator[str]:
    for entry in entries:
        first = next(object_history.lines([entry]))
        yield f'<li><button data-item="{numbers[id(entry)]}">{escape(first)}</button></li>'


def _item(entry: Entry | LogLine) -> dict[str, Json]:
    first, *rest = object_history.lines([entry])
    item: dict[str, Json] = {"name": first, "changes": [line.strip() for line in rest], "object": []}
    if isinstance(entry, Entry):
        item["changes"] = (
            [str(change) for change in entry.changes] if entry.revision.value is not None else []
        )
        if entry.revision.object is not None:
            item["object"] = json.dumps(shown_object(entry.revision.object), indent=1).splitlines()
    return item
