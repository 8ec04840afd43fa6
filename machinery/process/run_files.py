"""Run files: `D/run/<name>.json` has the addresses of a process that serves.

Each process writes its own atomically when it is ready and removes it on a clean exit; a reader checks that
the process lives, since a killed one leaves its file behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nominee.machinery.runtime import host
from nominee.machinery.runtime.clock import Clock, SystemClock

POLL_SECONDS = 0.02
REPLICAS_MAX = 5
"""How many processes of a component are looked for."""
_PATHS_MAX = 256
"""Paths that are cached: those of all processes are built at each poll."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """The addresses of a running process; `http` and `grpc` are `host:port`, or "" without such a port."""

    name: str
    component: str
    pid: int
    http: str
    grpc: str
    document: Mapping[str, Any]

    @staticmethod
    @lru_cache(_PATHS_MAX)
    def path(directory: Path | str, name: str) -> Path:
        return Path(directory) / "run" / f"{name}.json"

    @classmethod
    def read(cls, directory: Path | str, name: str) -> RunFile | None:
        """Return the file of a process that runs; None for one that is dead, or has no file.

        For the name of a component with several processes (`apiserver-0`, `apiserver-1`) it is the first's.
        """
        return next(cls.of_component(directory, name), None)

    @classmethod
    def of_component(cls, directory: Path | str, name: str) -> Iterator[RunFile]:
        """Yield the file of the process with this name, or those of `name-0`, `name-1`, ... that run."""
        found = cls._read(directory, name)
        if found is not None:
            yield found
        elif not name.rpartition("-")[2].isdigit():
            for index in range(REPLICAS_MAX):
                replica = cls._read(directory, f"{name}-{index}")
                if replica is not None:
                    yield replica

    @classmethod
    def _read(cls, directory: Path | str, name: str) -> RunFile | None:
        try:
            document = json.loads(host.current().read(cls.path(directory, name)))
            found = cls(
                document["name"],
                document["component"],
                int(document["pid"]),
                document.get("http", ""),
                document.get("grpc", ""),
                document,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if host.current().is_alive(found.pid) else None


def write(directory: Path | str, name: str, document: Mapping[str, Any]) -> None:
    """Write a run file; readers see the old one or the new one, never a part."""
    text = json.dumps(document, indent=2) + "\n"
    host.current().write(RunFile.path(directory, name), text.encode())


def remove(directory: Path | str, name: str, pid: int) -> None:
    """Remove a run file if it is still this process's own."""
    path = RunFile.path(directory, name)
    with suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads(host.current().read(path))["pid"] == pid:
            host.current().remove(path)


async def wait_for_run_file(
    directory: Path | str, name: str, *, limit_seconds: float = 60.0, clock: Clock | None = None
) -> RunFile:
    """Return the run file of a process, as soon as it is there.

    Raises:
        TimeoutError: it is not there within the limit.
    """
    watch = clock or SystemClock()
    deadline = watch.monotonic() + limit_seconds
    while True:
        found = RunFile.read(directory, name)
        if found is not None:
            return found
        if watch.monotonic() >= deadline:
            raise TimeoutError(
                f"{name} does not serve: no {RunFile.path(directory, name)} of a living process "
                f"after {limit_seconds:g} s"
            )
        await watch.sleep(POLL_SECONDS)


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    return host.current().is_alive(pid)
