"""When freed memory is given back, and how open files are shared among connections."""

from __future__ import annotations

import ctypes

import anyio
import pytest

from nominee.apiserver.fronts.open_files import GRPC_MAX, REST_MAX, ConnectionLimits, share
from nominee.apiserver.process import freed_memory
from nominee.apiserver.process.freed_memory import FREED_BYTES_MIN, FreedMemory
from nominee.machinery.runtime.clock import SystemClock
from tests.support.eventually import eventually

MIB = 1 << 20


@pytest.mark.parametrize(
    ("begin", "looks"),
    [
        (10 * MIB, [(20 * MIB, False), (41 * MIB, False), (42 * MIB, True)]),
        # What was given back is counted as free still; only what is freed after it counts.
        (0, [(100 * MIB, True), (100 * MIB, False), (131 * MIB, False), (132 * MIB, True)]),
        # Used again, and freed again.
        (0, [(100 * MIB, True), (50 * MIB, False), (81 * MIB, False), (82 * MIB, True)]),
    ],
)
def test_when_to_trim(begin: int, looks: list[tuple[int, bool]]) -> None:
    freed = FreedMemory(begin)
    assert [(free, freed.is_due(free)) for free, _ in looks] == looks


async def test_freed_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found = freed_memory._library()
    if found is None:
        pytest.skip("this C library has no mallinfo2 and malloc_trim")
    monkeypatch.setattr(freed_memory, "LOOK_SECONDS", 0.01)
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
    # Pieces small enough for the heap, and every hundredth of them stays.
    size, count = 32 << 10, 3 * FREED_BYTES_MIN // (32 << 10)
    pieces = [libc.malloc(size) for _ in range(count)]
    for piece in pieces:
        ctypes.memset(piece, 1, size)
    full = resident()
    async with anyio.create_task_group() as group:
        group.start_soon(freed_memory.run, SystemClock())
        await anyio.wait_all_tasks_blocked()
        for number, piece in enumerate(pieces):
            if number % 100:
                libc.free(piece)
        await eventually(lambda: resident() <= full - 2 * FREED_BYTES_MIN)
        group.cancel_scope.cancel()
    for piece in pieces[::100]:
        libc.free(piece)


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        (1 << 20, ConnectionLimits(GRPC_MAX, REST_MAX)),
        (4096, ConnectionLimits(1024, 2816)),
        (1024, ConnectionLimits(256, 512)),
        (8, ConnectionLimits(2, 1)),
    ],
)
def test_open_files_are_shared(files: int, limits: ConnectionLimits) -> None:
    assert share(files) == limits
