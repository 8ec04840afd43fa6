"""The parts of an HTML page that is one file: frame, paragraphs and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_FRAME = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{head}<title>{title}</title>
<style>
{style}
</style>
{body}
</html>
"""


def page(title: str, style: str, body: str, head: str = "") -> str:
    """Return a page; `title` is text, `body` and `head` are HTML."""
    return _FRAME.format(head=head, title=escape(title), style=style.strip(), body=body.strip())


def paragraphs(texts: Iterable[str]) -> str:
    """Return each text as a paragraph."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return "\n".join(["<table>", f"<tr>{head}</tr>", *lines, "</table>"])
