"""The machine under a process: its files, process ids and blocking calls.

The state files of components (run files, checkpoints, the cloud's instances) are read and written here, so
that the simulation can give each simulated process a machine of its own. Files that a user writes
(configuration, certificates) are read directly.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nominee.machinery.runtime.runtime import RUNTIME, Host

if TYPE_CHECKING:
    import anyio

T = TypeVar("T")


class Machine:
    """The machine on which this interpreter runs."""

    def name(self) -> str:
        return socket.gethostname()

    def pid(self) -> int:
        return os.getpid()

    def is_alive(self, pid: int) -> bool:
        """Read the state of the process in /proc."""
        try:
            with Path(f"/proc/{pid}/stat").open(encoding="utf-8", errors="replace") as stat:
                # The state comes after the command, which is in brackets and may hold anything.
                return stat.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
        except (OSError, IndexError):
            return False

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def glob(self, folder: Path, pattern: str) -> list[Path]:
        return sorted(folder.glob(pattern))

    def write(self, path: Path, data: bytes, *, durable: bool = False) -> None:
        """Write a new file beside the old one, and rename it over the old one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # A durable file has one writer; its leftover of a crash is overwritten by the next write.
        beside = path.with_suffix(".new") if durable else path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with beside.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
        if durable:
            _sync_directory(path.parent)

    def remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            path.unlink()

    async def simulated_get(self, address: str, path: str) -> tuple[int, bytes] | None:
        return None

    async def blocking(self, call: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
        """Make the call in a thread."""
        import anyio.to_thread  # the supervisor, which loads nothing large, imports this module

        return await anyio.to_thread.run_sync(call, limiter=limiter)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_MACHINE = Machine()


def current() -> Host:
    """Return the machine of the running task."""
    runtime = RUNTIME.get()
    return _MACHINE if runtime is None else runtime.host
