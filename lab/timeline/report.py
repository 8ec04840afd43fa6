"""The page of a report: one file with a table of items; a dialog shows one of them and its time line."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from nominee.lab.history import object_history, process_logs
from nominee.lab.history.history_file import NAME, HistoryFileError
from nominee.lab.history.process_logs import LogLine
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.reading import History
from nominee.lab.reports import html
from nominee.lab.reports.records import Record
from nominee.lab.timeline import page as timeline_page
from nominee.lab.timeline.marks import Mark
from nominee.lab.timeline.page import BUNDLE, inline
from nominee.machinery.runtime.clock import rfc3339
from nominee.machinery.wire.values.scalars import Json

BYTES_MAX: Final = 48 << 20
"""Of the content of the dialogs: a larger page is slow to open."""
ITEMS_MAX: Final = 2000
LOG_LINES_MAX: Final = 60
"""Of each log, from its end."""
LINE_CHARACTERS_MAX: Final = 400
MoreMarks = Callable[[str, Sequence[Revision], Sequence[LogLine]], Iterable[Mark]]
"""Returns marks of the runs in a directory that the log does not have."""
_FOLDER: Final = Path(__file__).parent
_EMPTY: Final[Mapping[str, Json]] = {"title": "time line"}
_FOLLOWED: Final = 3
"""Pods whose states are shown as bars where no object is at fault."""
_SIGNS: Final = {"passed": "✓", "held": "✓", "failed": "✗", "broken": "✗", "error": "!", "skipped": "-"}


class Block(NamedTuple):
    """Lines under a title; one that is not open is opened by a click."""

    title: str
    lines: Sequence[str]
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Record):
    """An item of a report: a line of its table, and the content of its dialog.

    `cells` are those after outcome and name. `commands` are shell commands by their purpose, `files` paths
    beside the page by name. `timeline` is a key of the page's time lines, "" for none. The dialog leaves out
    texts, blocks and commands that are empty.
    """

    name: str
    outcome: str
    cells: Sequence[str] = field(default=(), compare=False)
    texts: Sequence[str] = ()
    blocks: Sequence[Block] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    timeline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A page's title, summary and items; `columns` are those of their cells, `timelines` by key.

    A time line that all items share is shown on the page, and a single item too. `content` is HTML.
    """

    title: str
    summary: str
    columns: Sequence[str] = ()
    items: Sequence[Item] = ()
    timelines: Mapping[str, Json] = field(default_factory=dict)
    content: str = ""


def page(report: Report) -> str:
    """Return the page of a report; the page names the number of items that are left out."""
    shown = list(enumerate(report.items[:ITEMS_MAX]))
    items = {str(number): item for number, item in shown}
    keys = {item.timeline for item in items.values()}
    shared = next(iter(keys)) if len(keys) == 1 else ""
    more = len(report.items) - len(shown)
    left = f"<p class='warn'>{more} more items are left out.</p>" if more else ""
    body = [
        f'<p class="summary">{escape(report.summary)}</p>',
        f'<div data-timeline="{escape(shared)}"></div>' if shared else "",
        _table(report.columns, shown) if len(shown) > 1 else "",
        '<article id="only" class="panel"></article>' if len(shown) == 1 else "",
        left,
        report.content,
        dialog(items, report.timelines),
    ]
    return frame(report.title, "\n".join(filter(None, body)))


def frame(title: str, body: str, style: str = "") -> str:
    """Return a page in the look of the dashboard; `body` is HTML."""
    files = (BUNDLE / "page.css", _FOLDER / "report.css")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{timeline_page.POLICY}">'
    name = '<span class="logo" aria-hidden="true"></span>nominee'
    head = f'<h1>{name} <span class="quiet">{escape(title)}</span></h1>'
    content = f'<div class="report"><header>{head}</header>\n{body}</div>'
    return html.page(title, "".join([*map(_text, files), style]), content, policy)


def dialog(items: Mapping[str, Item], timelines: Mapping[str, Json]) -> str:
    """Return the dialog that an element with `data-item` opens, or the page's hash.

    Of items that take too much room, those that failed come first; the others say what is left out.
    """
    packed: dict[str, str] = {}
    found: dict[str, Json] = {}
    size = 0
    for key, item in sorted(items.items(), key=lambda each: _SIGNS.get(each[1].outcome) == "✓"):
        if item.timeline and item.timeline not in packed:
            packed[item.timeline] = _packed(inline(timelines[item.timeline]))
            size += len(packed[item.timeline])
        value = item.as_json()
        size += len(json.dumps(value["blocks"]))
        if size > BYTES_MAX:
            value["texts"].append("Its lines and its time line are left out: the page would be too large.")
            value.update(blocks=[], timeline="")
        found[key] = value
    used = {each["timeline"] for each in found.values()}
    data = {
        "items": {key: found[key] for key in items},
        "timelines": {key: text for key, text in packed.items() if key in used},
        "empty": inline(dict(_EMPTY)),
        "page": _packed(timeline_page.html(_EMPTY)) if used - {""} else "",
    }
    return (
        '<dialog id="item" aria-labelledby="name"><form method="dialog"><button>Close (Esc)</button></form>'
        '<div id="content"></div></dialog>\n'
        f'<script type="application/json" id="data">{inline(data)}</script>\n'
        f"<script>\n{_text(_FOLDER / 'report.js')}</script>"
    )


def _outcome(text: str) -> str:
    """Return an outcome with its sign, in its colour."""
    return f'<span class="chip {escape(text)}">{_SIGNS.get(text, "·")} {escape(text)}</span>'


def _table(columns: Sequence[str], items: Iterable[tuple[int, Item]]) -> str:
    lines = (
        f'<tr><td>{_outcome(item.outcome)}</td><td><button class="link" data-item="{number}">'
        f"{escape(item.name)}</button></td>{''.join(f'<td>{escape(cell)}</td>' for cell in item.cells)}</tr>"
        for number, item in items
    )
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in ("outcome", *columns))
    rows = "\n".join(lines)
    return (
        f'<div class="scroll panel"><table class="items"><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}</tbody></table></div>"
    )


def _packed(text: str) -> str:
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# The files of a run in its directory.


def tail(path: Path, lines: int | None = LOG_LINES_MAX) -> list[str]:
    """Return the end of a file, None for all of it; [] without one."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip()[:LINE_CHARACTERS_MAX] for line in deque(file, maxlen=lines)]
    except OSError:
        return []


def logs(directory: str) -> Iterator[Block]:
    """Yield the ends of the logs in a directory, "" for none."""
    for path in process_logs.log_files(Path(directory)) if directory else ():
        yield Block(f"Log of {path.stem}", tail(path))


def timelines(
    directories: Iterable[tuple[str, str, Iterable[str]]],
    more: MoreMarks = lambda *_: (),
) -> dict[str, Json]:
    """Return the time lines of runs by the directories in which these left a history.

    Of each run its directory, title and objects at fault.
    """
    runs: dict[str, list[tuple[str, Iterable[str]]]] = {}
    for directory, title, at_fault in directories:
        if directory:
            runs.setdefault(directory, []).append((title, at_fault))
    found: dict[str, Json] = {}
    for directory, of in runs.items():
        title = of[0][0] if len(of) == 1 else f"{len(of)} runs on one cluster"
        at_fault = list(dict.fromkeys(chain.from_iterable(objects for _, objects in of)))
        document = _timeline(directory, title, at_fault, more)
        if document is not None:
            found[directory] = document
    return found


def _timeline(
    directory: str,
    title: str,
    follow: Sequence[str],
    more: MoreMarks,
) -> Json:
    history, revisions, selection = History(), list[Revision](), object_history.Selection()
    try:
        history.read_file(Path(directory) / NAME, lambda each: revisions.append(each))
    except (OSError, HistoryFileError):
        return None
    log = process_logs.read(process_logs.log_files(Path(directory)), int(rfc3339(history.fold.time)[:4]))
    entries = object_history.entries(revisions, selection, log)
    pods = (each.subject for each in revisions if each.subject.startswith("Pod "))
    followed = follow or islice(dict.fromkeys(pods), _FOLLOWED)
    return timeline_page.document(title, entries, followed, more(directory, revisions, log))
