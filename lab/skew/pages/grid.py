"""The cells of a row as a table: one factor in columns, the others in lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nominee.lab.skew.matrix.model import JsonObject

MARKS = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "-"}
OUTSIDE = "*"
"""The mark of a cell outside the version skew policy."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: `lines` are the headers of a line and its cells; None is a cell that did not run."""

    column_factor: str
    columns: tuple[str, ...]
    line_factors: tuple[str, ...]
    lines: tuple[tuple[tuple[str, ...], tuple[JsonObject | None, ...]], ...]


def grid(cells: Sequence[JsonObject]) -> Grid:
    """Return the grid of the cells of one row: the first factor that is not the path is in the columns."""
    factors = tuple(cells[0]["values"]) if cells else ()
    column_factor = next((name for name in factors if name != "path"), "")
    others = tuple(name for name in factors if name != column_factor)
    columns = _values(cells, column_factor) if column_factor else ("",)
    by_place = {
        (tuple(cell["values"][name] for name in others), cell["values"].get(column_factor, "")): cell
        for cell in cells
    }
    headers = sorted({header for header, _ in by_place}, key=lambda header: [*map(_version_key, header)])
    lines = tuple((header, tuple(by_place.get((header, each)) for each in columns)) for header in headers)
    return Grid(column_factor, columns, others, lines)


def _values(cells: Sequence[JsonObject], factor: str) -> tuple[str, ...]:
    return tuple(sorted({cell["values"][factor] for cell in cells}, key=_version_key))


def _version_key(text: str) -> tuple[int, str]:
    """Sort versions by number, `default` before other gates, all else by text."""
    _, dot, minor = text.partition(".")
    if dot and minor.isdigit():
        return int(minor), text
    return (-1 if text == "default" else 0), text


def mark(cell: JsonObject) -> str:
    """Return the mark of a cell: its outcome, and whether it is outside the version skew policy."""
    return MARKS[cell["outcome"]] + (OUTSIDE if cell["unsupported"] else "")


def shown(cell: JsonObject) -> str:
    """Return the names of the cases that a cell showed: `kept → cleared`; only if it passed."""
    if cell["outcome"] != "passed":
        return ""
    return " → ".join(distinct([each["case"] for each in cell["seen"]]))


def distinct(cases: Sequence[str]) -> list[str]:
    """Return cases without those that repeat the one before."""
    return [case for index, case in enumerate(cases) if index == 0 or cases[index - 1] != case]
