"""Give freed memory back to the system.

glibc gives back only what is free at the end of its heap. 10,500 connections that come and go leave half a
gigabyte of free pieces in the middle of it, held in place by other objects; `malloc_trim` gives their pages
back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import anyio.to_thread

from machinery.runtime import logs
from machinery.runtime.clock import Clock

LOOK_SECONDS = 5.0
FREED_BYTES_MIN = 32 << 20
_log = logs.get()


class _MallocInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class FreedMemory:
    """Decides when to trim: enough has been freed since the last time. Sizes in bytes."""

    def __init__(self, free: int) -> None:
        # Free pieces stay counted as free once their pages are given back; used ones are lost to that.
        self._given_back = free

    def is_due(self, free: int) -> bool:
        """Whether to trim now that `free` bytes lie in free pieces; then they count as given back."""
        self._given_back = min(self._given_back, free)
        if free - self._given_back < FREED_BYTES_MIN:
            return False
        self._given_back = free
        return True


def _library() -> tuple[Callable[[], int], Callable[[int], int]] | None:
    """(how many bytes are free, trim), or None for a C library without them (musl, glibc before 2.33)."""
    try:
        libc = ctypes.CDLL(None)
        info, trim = libc.mallinfo2, libc.malloc_trim
    except (OSError, AttributeError):
        return None
    info.restype, info.argtypes = _MallocInfo, ()
    trim.restype, trim.argtypes = ctypes.c_int, (ctypes.c_size_t,)
    return (lambda: int(info().fordblks)), trim


async def run(clock: Clock) -> None:
    """Look every LOOK_SECONDS, and trim when that is worth it; returns where the C library cannot."""
    found = _library()
    if found is None:
        return
    free, trim = found
    freed = FreedMemory(free())
    while True:
        await clock.sleep(LOOK_SECONDS)
        if freed.is_due(free()):
            await anyio.to_thread.run_sync(trim, 0)
            _log.debug("Freed memory was given back")
