"""The heat map: one static HTML page without any other file. A cell opens its steps, logs and history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from nominee.skew.grid import grid, shown
from nominee.skew.model import JsonObject

TEMPLATE: Final = Path(__file__).with_name("page.html")


def page(document: JsonObject, evidence: Mapping[str, JsonObject]) -> str:
    """Return the page of a report; `evidence` is what `evidence.read` found, by cell."""
    cells = {
        cell["id"]: {**cell, "evidence": evidence.get(cell["id"], _NO_EVIDENCE)} for cell in document["cells"]
    }
    # "</script>" in a log would end the element.
    data = json.dumps(cells, separators=(",", ":")).replace("</", "<\\/")
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(document["title"] or document["matrix"]),
        summary=escape(f"{document['summary']}. Nominee {document['version']}; {document['file']}."),
        rows="\n".join(line for row in document["rows"] for line in _row(document, row)),
        answers="\n".join(_answers(document)),
        data=data,
    )


_NO_EVIDENCE: Final[JsonObject] = {"steps": [], "logs": {}, "history": []}


def _row(document: JsonObject, row: JsonObject) -> Iterator[str]:
    cells = [cell for cell in document["cells"] if cell["row"] == row["name"]]
    if not cells:
        return
    yield f"<h2>{escape(row['title'] or row['name'])}</h2>"
    yield f"<p>{escape(row['section'])}</p>"
    found = grid(cells)
    heads = [f"{found.column_factor} {value}".strip() for value in found.columns]
    yield "<table>"
    yield "<tr>" + "".join(f"<th>{escape(text)}</th>" for text in [*found.line_factors, *heads]) + "</tr>"
    for header, line in found.lines:
        texts = "".join(f"<th>{escape(text)}</th>" for text in header)
        yield f"<tr>{texts}{''.join(map(_cell, line))}</tr>"
    yield "</table>"
    if row["cases"]:
        yield '<table class="cases">'
        for case in row["cases"]:
            columns = (case["name"], case["when"], case["see"])
            yield "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in columns) + "</tr>"
        yield "</table>"


def _cell(cell: JsonObject | None) -> str:
    if cell is None:
        return '<td class="none">·</td>'
    outside = " outside" if cell["unsupported"] else ""
    text = shown(cell) or cell["outcome"]
    return (
        f'<td><button class="{cell["outcome"]}{outside}" data-cell="{escape(cell["id"])}" '
        f'title="{escape(cell["name"])}">{escape(text)}</button></td>'
    )


def _answers(document: JsonObject) -> Iterator[str]:
    if not document["answers"]:
        return
    yield '<h2>Answers of the KEPs</h2><table class="cases">'
    for answer in document["answers"]:
        columns = (f"KEP-{answer['kep']}", answer["section"], answer["answer"], answer["verdict"])
        yield "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in columns) + "</tr>"
    yield "</table>"
