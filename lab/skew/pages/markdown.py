"""The report as Markdown for the production-readiness section of a KEP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.lab.reports.markdown import as_text, table_head, table_line
from nominee.lab.skew.matrix.model import JsonObject
from nominee.lab.skew.pages.grid import OUTSIDE, grid, mark, shown

NOTE = (
    "Versions and feature gates are emulated by Nominee; the processes are not those of Kubernetes. "
    f"✓ passed, ✗ failed, ! could not run, · not selected, {OUTSIDE} outside Kubernetes' version skew policy."
)


def as_markdown(document: JsonObject) -> str:
    """Return the report: the questions of the questionnaire, and the cells that answer them."""
    rows = [row for row in document["rows"] if _cells(document, row)]
    paths = [row for row in rows if _has_paths(document, row)]
    others = [row for row in rows if row not in paths]
    lines = [f"# {as_text(document['title'] or document['matrix'])}", ""]
    lines += [f"{document['summary']}. {NOTE}", ""]
    lines += _failures(document)
    if paths:
        lines += ["## Were upgrade and rollback tested? Was the upgrade->downgrade->upgrade path tested?", ""]
        lines += [line for row in paths for line in row_lines(document, row)]
    if others:
        lines += ["## Version Skew Strategy", ""]
        lines += [line for row in others for line in row_lines(document, row)]
    lines += outside_lines(document["cells"])
    return "\n".join(lines).rstrip() + "\n"


def row_lines(document: JsonObject, row: JsonObject) -> Iterator[str]:
    """Yield the section of a row: the cases that a user sees by condition, and the grid of its cells."""
    cells = _cells(document, row)
    yield from (f"### {as_text(row['title'] or row['name'])}", "")
    section = as_text(row["section"])
    end = "" if section.endswith(("?", ".")) else "."
    head = f"Row `{row['name']}`" + (f": {section}{end}" if section else ".")
    yield from (" ".join(filter(None, [head, _played(cells), *programs_text(cells)])), "")
    if row["cases"]:
        yield from table_head(["case", "condition", "what a user sees", "cells"])
        for case in row["cases"]:
            count = sum(
                cell["outcome"] == "passed" and any(each["case"] == case["name"] for each in cell["seen"])
                for cell in cells
            )
            yield table_line([case["name"], case["when"], case["see"], str(count or "none")])
        yield ""
    yield from grid_lines(cells)
    yield ""
    yield from _measured_lines(cells)
    yield from _stage_lines(cells)


def _played(cells: Sequence[JsonObject]) -> str:
    """Return which cells of a row real processes played, or "" if they played all."""
    real = [cell for cell in cells if not cell["simulated"]]
    simulated = len(cells) - len(real)
    if not real or not simulated:
        return "Simulations played its cells." if simulated else ""
    names = ", ".join(
        f"`{' '.join(f'{factor}={value}' for factor, value in cell['values'].items())}`" for cell in real
    )
    others = "other cell" if simulated == 1 else f"other {cells_text(simulated)}"
    return f"Real processes played {names}; simulations played the {others}."


def programs_text(cells: Sequence[JsonObject]) -> list[str]:
    """Return which cells ran another program in a component's place."""
    programs = {
        f"`{name}={cell['values'][name]}`": command
        for cell in cells
        for name, command in cell["programs"].items()
    }
    return [f"With {value} the component is the program `{command}`." for value, command in programs.items()]


def grid_lines(cells: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the table of a row's cells."""
    found = grid(cells)
    heads = [f"{found.column_factor} {value}".strip() or "result" for value in found.columns]
    yield from table_head([*found.line_factors, *heads])
    for header, line in found.lines:
        texts = ["·" if cell is None else f"{mark(cell)} {shown(cell)}".rstrip() for cell in line]
        yield table_line([*header, *texts])


def _measured_lines(cells: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the table of what the cells measured."""
    rows = [(cell, row) for cell in cells for row in cell.get("measurements", ())]
    if rows:
        names = list(dict.fromkeys(name for _, row in rows for name in row["values"]))
        yield from table_head(["cell", *names])
        for cell, row in rows:
            label = ", ".join(map(str, (*cell["values"].values(), *row["variant"].values())))
            values = (row["values"].get(name) for name in names)
            yield table_line([label, *("" if value is None else str(value) for value in values)])
        yield ""


def _stage_lines(cells: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the cases that the cells of paths showed after each restart."""
    found = [cell for cell in cells if cell["outcome"] == "passed" and len(cell["seen"]) > 1]
    for cell in found:
        seen = "; ".join(f"{each['label']}: {each['case']}" for each in cell["seen"])
        yield f"- {as_text(', '.join(cell['values'].values()))}: {as_text(seen)}"
    if found:
        yield ""


def outside_lines(cells: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the section of the pairs outside the version skew policy."""
    counts: dict[str, int] = {}
    for cell in cells:
        for problem in cell["unsupported"]:
            counts[problem] = counts.get(problem, 0) + 1
    if counts:
        yield from ("## Outside the version skew policy", "")
        yield from ("These pairs ran although Kubernetes does not support them:", "")
        yield from (f"- {problem} ({cells_text(count)})" for problem, count in sorted(counts.items()))
        yield ""


def cells_text(count: int) -> str:
    """Return `1 cell` or `2 cells`."""
    return f"{count} cell" if count == 1 else f"{count} cells"


def _failures(document: JsonObject) -> Iterator[str]:
    found = [cell for cell in document["cells"] if cell["outcome"] in ("failed", "error")]
    if not found:
        return
    yield from ("## What failed", "", "The commands are for the directory where the matrix was run.", "")
    for cell in found:
        reason = as_text(cell["reason"]).rstrip(".")
        commands = f"Reproduce: `{cell['reproduce']}`; history: `{cell['historyCommand']}`"
        yield f"- {as_text(cell['name'])}: {reason}. {commands}"
    yield ""


def _cells(document: JsonObject, row: JsonObject) -> list[JsonObject]:
    return [cell for cell in document["cells"] if cell["row"] == row["name"]]


def _has_paths(document: JsonObject, row: JsonObject) -> bool:
    return any("path" in cell["values"] for cell in _cells(document, row))
