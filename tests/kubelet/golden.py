"""Reads the golden files: NOMINEE_GOLDEN may point elsewhere (a directory)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(os.environ.get("NOMINEE_GOLDEN") or Path(__file__).parents[1] / "golden")

Case = dict[str, Any]


def cases(name: str) -> list[Case]:
    """All cases of every file of this name below the golden directory."""
    return [case for path in sorted(GOLDEN.rglob(name)) for case in _read(path)]


def _read(path: Path) -> Iterator[Case]:
    with path.open() as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
