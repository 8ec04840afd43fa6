"""Markdown: text that shows as it is, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_MARKUP = re.compile(r"[*~$](?=\S)|(?<!\w)_(?=\S)|\\(?=[!-/:-@\[-`{-~])")


def as_text(text: str) -> str:
    """Return text as one line of Markdown that shows it; code between backticks stays code.

    GitHub reads `<name>` as an HTML element, `*a*` and `_a_` as emphasis, and `$a$` as mathematics.
    """
    parts = _CODE.split(" ".join(text.split()))
    return "".join(
        part if index % 2 else _MARKUP.sub(r"\\\g<0>", part).replace("<", "&lt;")
        for index, part in enumerate(parts)
    )


def table_line(texts: Iterable[str]) -> str:
    """Return a line of a table that shows these texts."""
    return markup_line(map(as_text, texts))


def markup_line(cells: Iterable[str]) -> str:
    """Return a line of a table of cells that are Markdown."""
    return "| " + " | ".join(map(one_cell, cells)) + " |"


def one_cell(markup: str) -> str:
    """Return Markdown as one line; a pipe would end its cell of a table, in code too."""
    return markup.replace("|", "\\|").replace("\n", " ")


def table_head(columns: Sequence[str]) -> list[str]:
    """Return the first two lines of a table."""
    return [table_line(columns), "|" + "---|" * len(columns)]
