"""The diagram in docs is the table in the code."""

from __future__ import annotations

from pathlib import Path

from nominee.supervisor.states import diagram


def test_the_diagram_of_states_is_generated() -> None:
    page = Path(__file__).parents[2] / "docs" / "design" / "003-supervisor.md"
    assert f"```mermaid\n{diagram()}\n```" in page.read_text(), (
        "print it again with `python -m nominee.supervisor.states`"
    )
