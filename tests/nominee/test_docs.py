"""Compare the pages in docs with the code: diagrams, failpoints, kinds."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from nominee.autoscaler.cloud.node_groups import parse
from nominee.controllers.shell.manager import TABLE as CONTROLLERS
from nominee.lab.history.invariants.table import CHECKERS
from nominee.localcluster.components import COMPONENTS
from nominee.localcluster.declared_failpoints import all_sentences, page
from nominee.localcluster.supervisor.model.states import TRANSITIONS
from nominee.machinery.api import actors
from nominee.machinery.api.kinds import KINDS
from nominee.machinery.runtime.failpoints import REGISTRY

ROOT = Path(__file__).parents[2]


def test_the_diagram_of_states_is_generated() -> None:
    page = ROOT / "docs" / "design" / "003-supervisor.md"
    assert f"```mermaid\n{TRANSITIONS.diagram()}\n```" in page.read_text(), (
        "print it again with `python -m nominee.localcluster.supervisor.model.states`"
    )


def test_the_page_of_failpoints_is_generated() -> None:
    text = (ROOT / "docs" / "failpoints.md").read_text()
    assert "\n".join(page()) in f"{text}\n", (
        "print it again with `python -m nominee.localcluster.declared_failpoints`"
    )


def test_the_page_of_kinds_is_generated() -> None:
    text = (ROOT / "docs" / "kinds.md").read_text()
    assert "\n".join(actors.page()) in text, "print it again with `python -m nominee.machinery.api.actors`"


def test_in_the_guide_of_imports_a_node_of_the_group_takes_one_of_the_pods() -> None:
    text = (ROOT / "docs" / "import.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (group,) = parse(block)
    (request,) = re.findall(r"--requests=cpu=(\d+)$", text, re.MULTILINE)
    capacity = int(group.template.status.allocatable["cpu"].string)
    assert capacity / 2 < int(request) <= capacity
    assert f"-l nominee.dev/node-group={group.name}\n" in text


def test_each_kind_has_its_actors_and_each_controller_a_kind() -> None:
    assert set(actors.ACTORS) == set(KINDS)
    named = set(re.findall(r"`([^`]+)`", " ".join(actors.ACTORS.values())))
    assert set(CONTROLLERS) <= named, "name the controller in nominee.machinery.api.actors"
    assert named <= set(CONTROLLERS)


def test_every_declaration_is_found_in_the_sources() -> None:
    """Compare with the registry after an import of every module that declares one."""
    for component in COMPONENTS:
        (folder,) = map(Path, importlib.import_module(component.module).__path__)
        for path in folder.rglob("*.py"):
            if "failpoints.declare(" in path.read_text(encoding="utf-8"):
                relative = path.relative_to(folder).with_suffix("")
                importlib.import_module(".".join((component.module, *relative.parts)))
    prefixes = tuple(f"{component.name}." for component in COMPONENTS)
    declared = {state.name for state in REGISTRY.states() if state.name.startswith(prefixes)}
    assert declared == set(all_sentences())


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
