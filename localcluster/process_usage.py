"""Memory of processes as PSS (shared pages divided among their processes), and processor time."""

from __future__ import annotations

import os
from pathlib import Path


def pss_bytes(pid: int) -> int | None:
    """Return the proportional set size of a process, or None if it is gone or may not be read."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def cpu_seconds(pid: int) -> float | None:
    """Return the processor time of a process so far, user and system together, or None if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # utime and stime: fields 12 and 13 after the command, which is in brackets and may hold any text.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
