"""The commit that a report was made with."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def commit() -> str:
    """Return the commit of a clone, with `+` for changes; "" for an installed package."""
    folder = Path(__file__).resolve().parents[1]
    if not (folder / ".git").exists():
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        ran = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return ran.stdout.strip()
    return ""
