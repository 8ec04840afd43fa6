"""Columns of text, three spaces apart, as kubectl lays them out."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with aligned columns, the header first; without trailing spaces."""
    return align([header, *rows])[0]


def align(
    rows: Sequence[Sequence[str]], widths: Sequence[int] | None = None
) -> tuple[list[str], Sequence[int]]:
    """Return lines, and the widths of their columns: at least `widths`, so that later rows stay aligned."""
    least = widths or [0] * (len(rows[0]) if rows else 0)
    widths = [max([least[column], *(len(row[column]) for row in rows)]) for column in range(len(least))]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return lines, widths
