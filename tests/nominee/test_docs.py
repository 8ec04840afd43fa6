"""Compare the pages in docs with the code: diagrams, failpoints."""

from __future__ import annotations

import re
from pathlib import Path

from nominee.failpoint_sentences import SENTENCES
from nominee.lab.history.invariants.table import CHECKERS
from nominee.localcluster.components import COMPONENTS
from nominee.localcluster.declared_failpoints import failpoints
from nominee.localcluster.supervisor.states import TRANSITIONS

ROOT = Path(__file__).parents[2]


def test_the_diagram_of_states_is_generated() -> None:
    page = ROOT / "docs" / "design" / "003-supervisor.md"
    assert f"```mermaid\n{TRANSITIONS.diagram()}\n```" in page.read_text(), (
        "print it again with `python -m nominee.localcluster.supervisor.states`"
    )


def test_the_page_of_failpoints_has_every_declared_one() -> None:
    page = (ROOT / "docs" / "failpoints.md").read_text()
    rows = re.findall(r"^\| `([a-z_-]+(?:\.[a-z_-]+)+)` \| (\S.*) \|$", page, re.M)
    declared = [name for component in COMPONENTS for name in failpoints(component)]
    assert declared
    assert sorted(SENTENCES) == sorted(declared), "one sentence for each failpoint in failpoint_sentences.py"
    assert rows == list(SENTENCES.items()), "one row for each failpoint in docs/failpoints.md"


def test_the_page_of_invariants_has_every_one_with_its_exceptions() -> None:
    page = (ROOT / "docs" / "invariants.md").read_text()
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", page, re.M | re.S))
    assert list(sections) == [checker.about.name for checker in CHECKERS]
    for checker in CHECKERS:
        about = checker.about
        text = " ".join(sections[about.name].split())
        assert text.startswith(f"{about.description} Checked: {about.checks}.")
        items = [f"- exception `{name}`: {sentence}" for name, sentence in about.exceptions.items()]
        items += [f"- counted `{name}`: {sentence}" for name, sentence in about.counts.items()]
        assert text.removeprefix(f"{about.description} Checked: {about.checks}.").strip() == " ".join(items)
