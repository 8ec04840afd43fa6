"""The workflow in docs/ and the commands of the README that it stands for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nominee.command_group import nominee

DOCS = Path(__file__).resolve().parents[3] / "docs"
TEXT = (DOCS / "github-actions.yml").read_text(encoding="utf-8")
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(
    r"(?m)^(?: {4}|    - run: )(nominee (?:skew run|chaos explore) my-.*)$", f"{TEXT}\n{README}"
)


def _steps() -> list[dict[str, object]]:
    return [step for job in yaml.safe_load(TEXT)["jobs"].values() for step in job["steps"]]


def test_actions_are_pinned_to_a_commit() -> None:
    used = [str(step["uses"]) for step in _steps() if "uses" in step]
    assert len(used) == 6
    assert [each for each in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each)] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_have_options_that_exist(line: str) -> None:
    words = shlex.split(re.sub(r"\$\{\{.*?\}\}", "--full", line).partition(">")[0], comments=True)[1:]
    found = CliRunner().invoke(nominee, [*words, "--help"])  # an unknown option is refused all the same
    assert found.exit_code == 0, found.output


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 4
