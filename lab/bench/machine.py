"""The machine on which a figure was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def busy_seconds() -> float:
    """Return the processor time that all processes have used since the machine started, over all cores."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, _lines("/proc/stat")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """Return processor, usable cores, memory, kernel and Python for a report."""
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
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
