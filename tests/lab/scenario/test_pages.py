"""Examples with other programs, in README and docs: every file that they name is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from nominee.lab.scenario.format.reading import read_text
from tests.support.patience import PATIENCE_SECONDS

_ROOT = Path(__file__).resolve().parents[3]
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_PROGRAM = """\
#!/bin/sh
for word; do
  case "$word" in --*=*kubeconfig | --*=*.yaml) test -s "${word#*=}" || exit 4 ;; esac
done
exec sleep 1000
"""
"""Ends at once if a file of its command line is missing, and is restarted then."""
_HEAD = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: page}
spec:
  cluster:
    insecure: true
    without: [autoscaler, cloud, controllers]
"""


def _blocks(page: Path) -> Iterator[str]:
    """Yield the indented blocks of a page, their indentation removed."""
    lines = page.read_text(encoding="utf-8")
    for found in re.finditer(r"(?:^    .*\n|^\n(?=    ))+", lines, re.MULTILINE):
        yield textwrap.dedent(found[0]).strip("\n")


def _examples() -> list[tuple[Path, str]]:
    """Return the blocks with a component that is another program, and their pages."""
    row = re.compile(r"^ *\S+: \{command: \[", re.MULTILINE)
    return [(page, block) for page in _PAGES for block in _blocks(page) if row.search(block)]


def _scenario(example: str) -> str:
    """Return an example of `spec.cluster` as a scenario: each program starts, and goes on running."""
    programs = yaml.safe_load(example)["components"]
    steps = "".join(
        f"  - expect: {{eventually: {{component: {{name: {name}, state: ready}}}}}}\n"
        f"  - expect: {{never: {{component: {{name: {name}, restarts: {{atLeast: 1}}}}}}, seconds: 2}}\n"
        for name in programs
    )
    return f"{_HEAD}{textwrap.indent(example, '    ')}\n  steps:\n{steps}"


def _named_files(example: str) -> Iterator[str]:
    for options in yaml.safe_load(example)["components"].values():
        for word in options["command"]:
            path = word.rpartition("=")[2]
            if path.endswith((".yaml", ".json")):
                yield path


def _printed(page: Path, file: str) -> str:
    """Return the document that a page prints below the sentence that names a file."""
    after = page.read_text(encoding="utf-8").partition(f" {file}:\n\n")[2]
    return textwrap.dedent("\n".join(takewhile(lambda line: line.startswith("    "), after.splitlines())))


def test_the_pages_have_examples() -> None:
    assert [page.name for page, _ in _examples()] == ["scenarios.md"]


@pytest.mark.parametrize(("page", "example"), _examples(), ids=lambda value: getattr(value, "stem", ""))
def test_the_files_of_an_example_are_printed(page: Path, example: str) -> None:
    (scenario,) = read_text(_scenario(example), page.name)
    assert all(own.command for own in scenario.cluster.components.values())
    for file in _named_files(example):
        assert not file.startswith("{dir}"), "the state directory is new: no file can be in it before"
        assert yaml.safe_load(_printed(page, file)), f"{page.name} does not print {file}"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "example"), _examples(), ids=lambda value: getattr(value, "stem", ""))
def test_an_example_runs_as_it_is_printed(page: Path, example: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for options in yaml.safe_load(example)["components"].values():
        program = programs / options["command"][0]
        program.write_text(_PROGRAM, encoding="utf-8")
        program.chmod(0o755)
    for file in _named_files(example):
        (tmp_path / file).write_text(_printed(page, file), encoding="utf-8")
    (tmp_path / "page.yaml").write_text(_scenario(example), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "nominee.cli", "scenario", "run", "page.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
