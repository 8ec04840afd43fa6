"""On what a figure was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Processor, usable cores, memory, kernel and Python, as reports need them."""
    model = ""
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    total = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "")
    return {
        "processor": model or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memoryMiB": int(total.split()[1]) // 1024 if total else None,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "loadAverage": round(os.getloadavg()[0], 2),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
