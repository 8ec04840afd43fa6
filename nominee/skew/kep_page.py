"""The page of a KEP: what a user sees by version and gate, and its answers confirmed or contradicted."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.skew.markdown import NOTE, cells_text, outside_lines, row_lines
from nominee.skew.model import JsonObject

_MARKS = {"confirmed": "✓ confirmed", "contradicted": "✗ contradicted", "not tested": "not tested"}
_NAMED_MAX = 3
"""Cells against an answer that are named; the others are counted."""


def kep_page(document: JsonObject, kep: int) -> str:
    """Return the page of a KEP.

    Raises:
        ValueError: the report has no row of this KEP.
    """
    rows = [row for row in document["rows"] if row["kep"] == kep]
    cells = [cell for cell in document["cells"] if cell["kep"] == kep]
    if not rows:
        known = ", ".join(sorted({str(row["kep"]) for row in document["rows"] if row["kep"]})) or "no KEP"
        raise ValueError(f"the report has no row of KEP-{kep}; it has {known}")
    passed = sum(cell["outcome"] == "passed" for cell in cells)
    selection = "every combination" if document["selection"] == "all" else "a pairwise selection"
    lines = [
        f"# KEP-{kep}: version skew, upgrade and rollback",
        "",
        f"<!-- Generated: nominee skew report DIR --kep {kep}. Do not edit. -->",
        f"The matrix `{document['file']}` ran {selection} of versions, feature gates and paths on Nominee "
        f"{document['version']}: {passed} of {len(cells)} cells passed. {NOTE}",
        "",
        "`nominee skew run skew.yaml --report DIR` repeats the runs; [skew.md](skew.md) explains the matrix.",
        "",
        "## What a user sees",
        "",
    ]
    for row in rows:
        if any(cell["row"] == row["name"] for cell in cells):
            lines += row_lines(document, row)
    lines += _answers(document, kep)
    lines += outside_lines(cells)
    return "\n".join(lines).rstrip() + "\n"


def _answers(document: JsonObject, kep: int) -> Iterator[str]:
    answers = [answer for answer in document["answers"] if answer["kep"] == kep]
    if not answers:
        return
    counts = {
        verdict: sum(answer["verdict"] == verdict for answer in answers)
        for verdict in ("confirmed", "contradicted", "not tested")
    }
    yield from ("## The KEP's answers", "")
    yield ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "."
    section = ""
    for answer in answers:
        if answer["section"] != section:
            section = answer["section"]
            yield from ("", f"### {section}", "")
            yield from ("| the KEP | verdict | evidence |", "|---|---|---|")
        yield f"| {answer['answer']} | {_MARKS[answer['verdict']]} | {_evidence(answer)} |"
    yield ""


def _evidence(answer: JsonObject) -> str:
    against = answer["against"]
    if answer["verdict"] == "not tested":
        parts = [answer["reason"]]
    elif against:
        verb = "differs" if len(against) == 1 else "differ"
        parts = [f"{len(against)} of {cells_text(len(answer['cells']))} {verb}:"]
        parts += [f"`{name}`: {seen}." for name, seen in list(against.items())[:_NAMED_MAX]]
    else:
        rows = dict.fromkeys(name.split()[0] for name in answer["cells"])
        parts = [f"{cells_text(len(answer['cells']))} of {', '.join(rows)}."]
    return " ".join([*parts, answer["note"]]).strip().replace("|", "\\|").replace("\n", " ")
