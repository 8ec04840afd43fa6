"""Read the recordings of the real components: tests/golden, or the folder that NOMINEE_GOLDEN names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Case = dict[str, Any]
EXCHANGES = Path(__file__).parents[1] / "golden" / "exchanges"
"""Whole exchanges of real components with the real API server; NOMINEE_GOLDEN does not change them."""


def folder() -> Path:
    """Return the folder of the recordings."""
    return Path(os.environ.get("NOMINEE_GOLDEN") or Path(__file__).parents[1] / "golden")


def read(name: str) -> list[Case]:
    """Return the cases of a file, one for each line.

    Raises:
        ValueError: a line is empty or not JSON, so that no case can be lost silently.
    """
    lines = (folder() / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
