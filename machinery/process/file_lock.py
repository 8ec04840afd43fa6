"""Lock files: one holder each; the lock is released when its process ends.

Light on purpose: the supervisor, which loads nothing large, uses it too.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_PID_BYTES_MAX = 32


class HeldError(Exception):
    """Another process holds the lock; `pid` is the one that the file names, 0 where it names none."""

    def __init__(self, path: Path, pid: int) -> None:
        super().__init__(f"{path} is locked" + (f" by pid {pid}" if pid else ""))
        self.pid = pid


def acquire(path: Path) -> int:
    """Lock a file, which is made if it is missing, and return its descriptor.

    The lock lives as long as any copy of the descriptor is open, also across exec where it is inheritable.

    Raises:
        HeldError: another process holds it.
        OSError: the file cannot be opened, or its file system has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _named(descriptor)
        os.close(descriptor)
        raise HeldError(path, pid) from None
    except OSError:
        os.close(descriptor)
        raise
    name_holder(descriptor, os.getpid())
    return descriptor


def name_holder(descriptor: int, pid: int) -> None:
    """Write into a locked file who holds it, for messages only."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{pid}\n".encode(), 0)


def holder(path: Path) -> int | None:
    """Return the pid that a lock file names (0 where it names none), or None when no process holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _named(descriptor: int) -> int:
    text = os.pread(descriptor, _PID_BYTES_MAX, 0).decode(errors="replace").strip()
    return int(text) if text.isdecimal() else 0
