"""The page of a KEP: the cases that a user sees by version and gate, and its answers with verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.lab.reports.markdown import as_text, table_head, table_line
from nominee.lab.skew.matrix.model import JsonObject
from nominee.lab.skew.pages.markdown import NOTE, cells_text, outside_lines, programs_text, row_lines

_MARKS = {"confirmed": "✓ confirmed", "contradicted": "✗ contradicted", "not tested": "not tested"}
_NAMED_MAX = 3
"""Cells against an answer that are named; the others are counted."""


class UnknownKEPError(ValueError):
    """The report has no row of a KEP; the message has those that it knows."""


def kep_page(document: JsonObject, kep: int) -> str:
    """Return the page of a KEP.

    Raises:
        UnknownKEPError: the report has no row of this KEP.
    """
    rows = [row for row in document["rows"] if row["kep"] == kep]
    cells = [cell for cell in document["cells"] if cell["kep"] == kep]
    if not rows:
        known = ", ".join(sorted({str(row["kep"]) for row in document["rows"] if row["kep"]})) or "no KEP"
        raise UnknownKEPError(f"the report has no row of KEP-{kep}; it has {known}")
    lines = [
        f"# KEP-{kep}: version skew, upgrade and rollback",
        "",
        f"<!-- Generated: nominee skew report DIR --kep {kep}. Do not edit. -->",
        f"{_extent(document, kep, cells)} {NOTE}",
        "",
        f"`nominee skew run {document['file']} --report DIR` repeats the runs; [skew.md](skew.md) explains "
        "the matrix.",
        "",
        *_answers(document, kep),
        "## What a user sees",
        "",
    ]
    for row in rows:
        if any(cell["row"] == row["name"] for cell in cells):
            lines += row_lines(document, row)
    lines += outside_lines(cells)
    return "\n".join(lines).rstrip() + "\n"


def _extent(document: JsonObject, kep: int, cells: Sequence[JsonObject]) -> str:
    """Return the extent of the run: the cells that ran, and the missing ones."""
    selection = "every combination" if document["selection"] == "all" else "a pairwise selection"
    only = f" (of it the cells that match `{document['only']}`)" if document["only"] else ""
    missing = sum(cell["kep"] == kep for cell in document["unfinished"])
    passed = sum(cell["outcome"] == "passed" for cell in cells)
    text = (
        f"The matrix `{document['file']}` ran {selection}{only} of versions, feature gates and paths on "
        f"Nominee {document['version']}: {passed} of {len(cells) + missing} cells passed."
    )
    if missing:
        text = f"{text} **Incomplete: {cells_text(missing)} did not run.**"
    return " ".join([f"{text} {_played(cells)}".rstrip(), *programs_text(cells)])


def _played(cells: Sequence[JsonObject]) -> str:
    """Return how many cells were simulated."""
    simulated = sum(cell["simulated"] for cell in cells)
    if not simulated:
        return "All ran on real processes." if cells else ""
    real = cells_text(len(cells) - simulated)
    return f"Real processes played {real}, [simulations](simulation.md) {simulated}."


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
            yield from ("", f"### {as_text(section)}", "")
            yield from table_head(["the KEP", "verdict", "evidence"])
        yield table_line([answer["answer"], _MARKS[answer["verdict"]], _evidence(answer)])
    yield ""


def _evidence(answer: JsonObject) -> str:
    against, count = answer["against"], len(answer["cells"])
    if answer["verdict"] == "not tested":
        parts = [answer["reason"]]
    elif against:
        verb = "differs" if len(against) == 1 else "differ"
        parts = [f"{len(against)} of {cells_text(count)} {verb}{_outside(answer)}:"]
        parts += [f"`{name}`: {seen}." for name, seen in list(against.items())[:_NAMED_MAX]]
    else:
        rows = dict.fromkeys(name.split()[0] for name in answer["cells"])
        shown = f" showed: {'; '.join(answer['shown'])}" if answer["shown"] else ""
        named = ", ".join(f"`{name}`" for name in rows)
        parts = [f"{cells_text(count)} of {named}{_outside(answer)}{shown}."]
    return " ".join([*parts, answer["note"]])


def _outside(answer: JsonObject) -> str:
    """Return how many of the cells that decided are outside the version skew policy."""
    outside, count = answer["outside"], len(answer["cells"])
    if not outside:
        return ""
    return " (outside the skew policy)" if outside == count else f" ({outside} outside the skew policy)"
