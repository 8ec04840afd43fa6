"""The page of a time line: one file that needs no server and no network, made of the files of `bundle/`."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from nominee.lab.history import object_history
from nominee.lab.history.changes import shown_object
from nominee.lab.history.object_history import Entry
from nominee.lab.history.process_logs import LogLine
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.json_text import compact
from nominee.lab.timeline.marks import Mark, of_lines
from nominee.machinery.wire.values.scalars import Json

ENTRIES_MAX: Final = 3000
"""The newest revisions and marks are shown: a page with more is too large for a browser."""
BUNDLE: Final = Path(__file__).with_name("bundle")
_IMPORTED: Final = re.compile(r'(from|import) "\./([\w/]+\.js)"')
_FILES: Final = re.compile(r"<(link|script) .*\n")
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; "
    "frame-src blob:; base-uri 'none'; form-action 'none'"
)
_HEAD: Final = Template("""<meta http-equiv="Content-Security-Policy" content="$policy">
<style>
$style
</style>
<script type="importmap">$modules</script>
<script type="application/json" id="timeline">$document</script>
</head>
""")


def page(title: str, entries: Sequence[Entry | LogLine], follow: Iterable[str] = ()) -> str:
    """Return the page of a history's entries, in the order of their times.

    `follow` are the objects (`Pod default/a`) whose states are bars below the time axis from the beginning.
    """
    return html(document(title, entries, follow))


def document(
    title: str, entries: Sequence[Entry | LogLine], follow: Iterable[str] = (), more: Iterable[Mark] = ()
) -> dict[str, Json]:
    """Return the document of a page; `more` are marks besides those of the entries."""
    shown = TimeLine(title, "page")
    writes = [entry for entry in entries if isinstance(entry, Entry) and not entry.event]
    shown.left_out = max(len(writes) - ENTRIES_MAX, 0)
    before = {entry.revision.key: entry.revision for entry in writes[: shown.left_out]}
    for revision in before.values():
        if revision.value is not None:
            shown.add(replace(revision, is_state=True))
    writes = writes[shown.left_out :]
    details: dict[str, Json] = {str(entry.revision.revision): _details(entry) for entry in writes}
    for entry in writes:
        shown.add(entry.revision, entry.writer)
    marks = [*_marks(entries), *more][-ENTRIES_MAX:]
    return {**json.loads(shown.text(marks=marks, details=details)), "follow": list(follow)}


def html(document: Mapping[str, Json]) -> str:
    """Return the page of a document."""
    head = _HEAD.substitute(
        policy=POLICY,
        style="\n".join(
            (BUNDLE / name).read_text(encoding="utf-8") for name in ("vendor/uplot.css", "page.css")
        ),
        modules=json.dumps({"imports": dict(_modules())}),
        document=inline(dict(document)),
    )
    frame = _FILES.sub("", (BUNDLE / "index.html").read_text(encoding="utf-8"))
    title = f"<title>{escape(str(document['title']))}</title>"
    start = '<script type="module">import "page/main.js";</script>\n</body>'
    return frame.replace("<title>nominee</title>", title).replace("</head>\n", head).replace("</body>", start)


def inline(document: Json) -> str:
    """Return a document as the text of a script element."""
    # "</script>" in a log would end the element, and "<!--<script>" hide its end.
    return compact(document).replace("<", "\\u003c")


def _modules() -> Iterator[tuple[str, str]]:
    """Yield the modules by the names by which they import each other: a data: URL has no relative ones."""
    for file in sorted(BUNDLE.rglob("*.js")):
        text = _IMPORTED.sub(r'\1 "page/\2"', file.read_text(encoding="utf-8"))
        data = b64encode(text.encode()).decode()
        yield f"page/{file.relative_to(BUNDLE).as_posix()}", f"data:text/javascript;base64,{data}"


def _marks(entries: Sequence[Entry | LogLine]) -> Iterator[Mark]:
    """Yield the marks of log lines and of Events."""
    started: set[str] = set()
    for entry in entries:
        if isinstance(entry, LogLine):
            yield from list(of_lines([entry], started)) or [Mark(entry.time, "log", entry.text)]
        elif entry.event:
            yield Mark(entry.time, "log", entry.event)


def _details(entry: Entry) -> dict[str, Json]:
    revision = entry.revision
    changes = [str(change) for change in entry.changes] if revision.value is not None else []
    found: dict[str, Json] = {"name": next(object_history.lines([entry])), "changes": changes, "object": []}
    if revision.object is not None:
        found["object"] = json.dumps(shown_object(revision.object), indent=1).splitlines()
    return found
