"""A project whose own packages have the names of Nominee's folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

PROJECT = Path(__file__).parent / "user_project"


@pytest.mark.slow
def test_packages_of_the_project_and_of_nominee_do_not_hide_each_other(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "check.py", str(tmp_path / "check")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["node-0 node-0"]
