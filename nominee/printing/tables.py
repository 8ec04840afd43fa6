"""Columns of text, three spaces apart, as kubectl lays them out; and short ages."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns, the header first; no spaces at the ends of lines."""
    return aligned([header, *rows])[0]


def aligned(
    rows: Sequence[Sequence[str]], widths: Sequence[int] | None = None
) -> tuple[list[str], Sequence[int]]:
    """Lines and the widths of their columns, at least `widths`: later rows stay under earlier ones."""
    least = widths or [0] * (len(rows[0]) if rows else 0)
    widths = [max([least[column], *(len(row[column]) for row in rows)]) for column in range(len(least))]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return lines, widths


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age(seconds: float) -> str:
    """A duration in the form of kubectl's AGE column: `5s`, `3m20s`, `17m`, `5h2m`, `4d`, `2y11d`."""
    s = int(seconds)
    if s < -1:
        return "<invalid>"
    if s < 2 * _MINUTE:
        return f"{max(s, 0)}s"
    if s < 10 * _MINUTE:
        return _pair(s // _MINUTE, "m", s % _MINUTE, "s")
    if s < 3 * _HOUR:
        return f"{s // _MINUTE}m"
    if s < 8 * _HOUR:
        return _pair(s // _HOUR, "h", s % _HOUR // _MINUTE, "m")
    if s < 2 * _DAY:
        return f"{s // _HOUR}h"
    if s < 8 * _DAY:
        return _pair(s // _DAY, "d", s % _DAY // _HOUR, "h")
    if s < 2 * _YEAR:
        return f"{s // _DAY}d"
    if s < 8 * _YEAR:
        return _pair(s // _YEAR, "y", s % _YEAR // _DAY, "d")
    return f"{s // _YEAR}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
