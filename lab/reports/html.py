"""The parts of an HTML page that is one file: frame and style, tables, and a dialog that shows an item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from nominee.machinery.wire.values.scalars import Json

_FOLDER: Final = Path(__file__).parent
STYLE: Final = (_FOLDER / "page.css").read_text(encoding="utf-8")
"""The style of pages with a dialog, in a light and a dark colour scheme."""

_FRAME = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}
</style>
{body}
</html>
"""


def page(title: str, style: str, body: str) -> str:
    """Return a page; `title` is text, `body` is HTML."""
    return _FRAME.format(title=escape(title), style=style.strip(), body=body.strip())


def dialog(items: Mapping[str, Json]) -> str:
    """Return the dialog that an element with `data-item` opens, or the page's hash.

    The page's own script defines `fill(item)`, which calls `add` and `block` for the dialog's content.
    """
    # "</script>" in a log would end the element, and "<!--<script>" hide its end.
    data = json.dumps(items, separators=(",", ":")).replace("<", "\\u003c")
    return Template((_FOLDER / "dialog.html").read_text(encoding="utf-8")).substitute(data=data)


def paragraphs(texts: Iterable[str]) -> str:
    """Return each text as a paragraph."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return "\n".join(["<table>", f"<tr>{head}</tr>", *lines, "</table>"])
