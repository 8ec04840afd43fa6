"""The machine of simulated processes: files in memory, process ids, and disk writes that take a moment."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.lowlevel

from nominee.simulation.owner import Owner, OwnerState

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
_DISK_SECONDS_MEAN: Final = 0.0005
FILES_MAX: Final = 100_000


class Files:
    """The files of a state directory; they outlive the processes."""

    def __init__(self) -> None:
        self.content: dict[Path, bytes] = {}
        self.closed = False

    def close(self) -> None:
        """Keep the files as they are, whatever is written."""
        self.closed = True


class SimulatedHost:
    """machinery.runtime.runtime.Host for one process."""

    def __init__(
        self,
        owner: Owner,
        files: Files,
        processes: Mapping[int, Owner],
        rng: random.Random,
        get: Callable[[str, str], Awaitable[tuple[int, bytes]]],
    ) -> None:
        self._get = get
        self._owner = owner
        self._files = files
        self._processes = processes
        self._rng = rng

    def name(self) -> str:
        return "simulated"

    def pid(self) -> int:
        return self._owner.pid

    def is_alive(self, pid: int) -> bool:
        owner = self._processes.get(pid)
        return owner is not None and owner.state is not OwnerState.DEAD

    def read(self, path: Path) -> bytes:
        try:
            return self._files.content[path]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory", str(path)) from None

    def glob(self, folder: Path, pattern: str) -> list[Path]:
        files = self._files.content
        return sorted(path for path in files if path.parent == folder and fnmatchcase(path.name, pattern))

    def write(self, path: Path, data: bytes, *, durable: bool = False) -> None:
        if len(self._files.content) >= FILES_MAX:
            raise OSError(28, "No space left on device", str(path))
        if not self._files.closed:
            self._files.content[path] = data

    def remove(self, path: Path) -> None:
        if not self._files.closed:
            self._files.content.pop(path, None)

    async def simulated_get(self, address: str, path: str) -> tuple[int, bytes] | None:
        return await self._get(address, path)

    async def blocking(self, call: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
        """Make the call after a moment, as a thread would; the process may die before, and after."""
        await anyio.sleep(self._rng.expovariate(1.0 / _DISK_SECONDS_MEAN))
        result = call()
        await anyio.lowlevel.checkpoint()
        return result
