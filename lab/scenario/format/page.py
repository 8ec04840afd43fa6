"""The tables of verbs, of conditions and of measures in docs/scenarios.md."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.measures.table import MEASURES
from nominee.lab.scenario.steps.table import VERBS


def step_table() -> str:
    """Return the table of verbs."""
    return _table(("step", ""), {verb: action.row for verb, action in VERBS.items()})


def condition_table() -> str:
    """Return the table of conditions."""
    return _table(("condition", "fields"), {key: kind.row for key, kind in CONDITIONS.items()})


def measure_table() -> str:
    """Return the table of measures."""
    return _table(("measure", "value"), {key: kind.row for key, kind in MEASURES.items()})


def _table(heads: tuple[str, str], rows: Mapping[str, str]) -> str:
    first, second = heads
    lines = [f"| {first} | {second} |" if second else f"| {first} | |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {row} |" for name, row in rows.items())])


if __name__ == "__main__":
    print(step_table(), condition_table(), measure_table(), sep="\n\n")
