"""What processes use: memory as PSS (shared pages divided among those who share them), processor time."""

from __future__ import annotations

import os
from pathlib import Path


def pss_bytes(pid: int) -> int | None:
    """Proportional set size of one process, or None when it is gone or not ours to read."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def cpu_seconds(pid: int) -> float | None:
    """Processor time of one process so far, user and system together, or None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # After the command, which is in brackets and may hold anything: utime and stime are the 12th and 13th.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
