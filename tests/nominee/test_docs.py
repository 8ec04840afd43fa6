"""Compare the pages in docs with the code: diagrams, failpoints."""

from __future__ import annotations

import re
from pathlib import Path

from nominee.completion.declared import failpoints
from nominee.components import COMPONENTS
from nominee.failpoint_sentences import SENTENCES
from nominee.supervisor.states import diagram

ROOT = Path(__file__).parents[2]


def test_the_diagram_of_states_is_generated() -> None:
    page = ROOT / "docs" / "design" / "003-supervisor.md"
    assert f"```mermaid\n{diagram()}\n```" in page.read_text(), (
        "print it again with `python -m nominee.supervisor.states`"
    )


def test_the_page_of_failpoints_has_every_declared_one() -> None:
    page = (ROOT / "docs" / "failpoints.md").read_text()
    rows = re.findall(r"^\| `([a-z_-]+(?:\.[a-z_-]+)+)` \| (\S.*) \|$", page, re.M)
    declared = [name for component in COMPONENTS for name in failpoints(component)]
    assert declared
    assert sorted(SENTENCES) == sorted(declared), "one sentence for each failpoint in failpoint_sentences.py"
    assert rows == list(SENTENCES.items()), "one row for each failpoint in docs/failpoints.md"
