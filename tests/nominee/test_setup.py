"""`make setup`: it takes minutes on a new machine, and names each step before it begins."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS

_REPOSITORY = Path(__file__).resolve().parents[2]
# As `python`: it makes what the next step needs, and reports each step that takes long.
_PYTHON = r"""#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo "ran venv" ;;
  *"pip install"*requirements.txt) echo "ran pip" ;;
  *"pip install"*) echo "ran pip -e" ;;
  *compile.py*) mkdir -p "$2" && echo "ran compile.py" ;;
  *compileall*) echo "ran compileall" ;;
esac
"""


def test_every_step_of_the_setup_is_named_before_it_runs(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(_PYTHON)
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "setup", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}", f"PB={tmp_path / 'pb'}"],
        cwd=_REPOSITORY,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")
    lines = [re.sub(r"\d+", "N", line.replace(str(tmp_path), "")) for line in made.stdout.splitlines()]
    assert [line for line in lines if not line.startswith("make")] == [
        "setup: creating a virtual environment in /venv",
        "ran venv",
        "setup: installing N packages into /venv; this takes a minute or two",
        "ran pip",
        "setup: installing nominee itself",
        "ran pip -e",
        "setup: compiling N protobuf files into /pb",
        "ran compile.py",
        "setup: compiling the sources to bytecode",
        "ran compileall",
    ]
