"""Return freed memory to the system.

glibc returns only memory at the end of its heap. 10,500 connections that come and go leave half a gigabyte of
free pieces in the middle, held in place by other objects; `malloc_trim` returns their pages.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import anyio.to_thread

from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

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
    """Decides when to trim: when enough memory has been freed since the last time. Sizes in bytes."""

    def __init__(self, free: int) -> None:
        # glibc counts free pieces as free after their pages are returned, until they are used again.
        self._given_back = free

    def is_due(self, free: int) -> bool:
        """Report whether to trim now that `free` bytes are free; if so they count as returned."""
        self._given_back = min(self._given_back, free)
        if free - self._given_back < FREED_BYTES_MIN:
            return False
        self._given_back = free
        return True


def _library() -> tuple[Callable[[], int], Callable[[int], int]] | None:
    """Return (the free bytes, trim), or None for a C library without them (musl, glibc before 2.33)."""
    try:
        libc = ctypes.CDLL(None)
        info, trim = libc.mallinfo2, libc.malloc_trim
    except (OSError, AttributeError):
        return None
    info.restype, info.argtypes = _MallocInfo, ()
    trim.restype, trim.argtypes = ctypes.c_int, (ctypes.c_size_t,)
    return (lambda: int(info().fordblks)), trim


async def run(clock: Clock) -> None:
    """Trim when it is due, checked every LOOK_SECONDS; return if the C library cannot trim."""
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
