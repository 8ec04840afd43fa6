"""Memory of processes as it is counted here: PSS, shared pages divided among those who share them."""

from __future__ import annotations

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
