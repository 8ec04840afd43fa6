"""Functions that jobs of tests run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from nominee.lab.jobs.job import Write


def environment(_directory: Path, write: Write, names: Mapping[str, str]) -> None:
    """Write the values of variables, one after another."""
    for name in names:
        write({name: os.environ.get(name, "")})


def fail(directory: Path, write: Write, code: int) -> None:
    """Leave a file and a line, and end with an exit code."""
    (directory / "kept.txt").write_text("kept", encoding="utf-8")
    (directory / "other.txt").write_text("other", encoding="utf-8")
    write({"directory": str(directory)})
    print("the reason", file=sys.stderr)
    sys.exit(code)


def double(_directory: Path, write: Write, factor: int) -> None:
    """Answer each number of standard input."""
    write("ready")
    for line in sys.stdin:
        write(factor * int(line))
