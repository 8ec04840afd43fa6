"""The README's commands, played as a new user does: in order, in one directory, in one shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nominee.test_cli import nominee
from tests.support.patience import PATIENCE_SECONDS

_README = Path(__file__).resolve().parents[2] / "README.md"
_SECTIONS = ("Start a cluster", "Use kubectl", "Break it")
_WATCH_SECONDS = 3
_SECONDS_MAX = 10 * PATIENCE_SECONDS


def commands(section: str) -> str:
    """Return the indented blocks of a section as lines of a shell, without one that has a placeholder."""
    text = _README.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.M)
    return "".join(re.sub("^    ", "", block, flags=re.M) for block in blocks if "PORT" not in block)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for directory in (".nominee", "replicas"):
        nominee("down", "--kill", directory=tmp_path / directory)


@pytest.mark.slow
def test_the_commands_of_the_readme_succeed_in_order(home: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    script = "".join(map(commands, _SECTIONS))
    assert script.count("\nnominee ") > 10
    # What watches until Ctrl-C is interrupted.
    script = re.sub(
        r"^(nominee .* -w)$", rf"timeout {_WATCH_SECONDS} \1 || test $? = 124", script, flags=re.M
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    # Its exit status is its answer, which is "no" here.
    script = re.sub(r"^(kubectl .*auth can-i delete .*)$", r"\1 || test $? = 1", script, flags=re.M)
    (home / "script").write_text(script)
    with (home / "log").open("w") as log:  # a pipe would be held open by the clusters
        played = subprocess.run(
            ["bash", "-ex", "script"],
            stdin=subprocess.DEVNULL, cwd=home, env=environment, stdout=log, stderr=log, text=True,
            timeout=_SECONDS_MAX, check=False,
        )  # fmt: skip
    assert played.returncode == 0, (home / "log").read_text()[-4000:]
