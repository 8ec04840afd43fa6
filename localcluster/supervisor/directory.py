"""A cluster's state directory: run files, logs, the lock, and the files that a killed cluster left.

D/run/<name>.json   written by each process when it serves (docs/design/001-contracts.md)
D/run/plan.json     the plan of the supervisor
D/run/supervisor.sock, supervisor.lock
D/logs/<name>.log   standard output and error of each process
D/cluster.json      a description of the whole cluster, while it runs
D/etcd, D/kubelet   state of the components
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nominee.localcluster.supervisor.clock import wait_until
from nominee.machinery.process import file_lock

_RESERVED = frozenset({"plan"})
_DYING_SECONDS_MAX = 2.0  # how long processes of a killed cluster may take to exit
LOG_BYTES_MAX = 64 * 1024 * 1024  # a larger log is renamed (one is kept) when its process starts
JsonObject = dict[str, Any]
"""A JSON object that another process wrote."""


class InUseError(Exception):
    """Another cluster runs in this directory; the message names it."""


class UnsupervisedError(InUseError):
    """Processes without a supervisor serve from this directory."""


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that readers see the old content or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    return process_letter(pid) not in ("", "Z", "X")


def process_letter(pid: int) -> str:
    """Return the kernel's letter for the state of a process (`T` is stopped), or "" if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def command_line(pid: int) -> list[str]:
    """Return the program and the arguments of a process; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def read_json(path: Path) -> JsonObject | None:
    """Return the JSON object in a file, or None if there is no such object."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The paths of one cluster."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def cluster(self) -> Path:
        return self.path / "cluster.json"

    @property
    def plan(self) -> Path:
        return self.run / "plan.json"

    @property
    def lock(self) -> Path:
        return self.run / "supervisor.lock"

    def run_file(self, name: str) -> Path:
        return self.run / f"{name}.json"

    def log_file(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def run_files(self) -> Iterator[tuple[str, JsonObject]]:
        """Return name and content of every process's run file, ordered by name."""
        for path in sorted(self.run.glob("*.json")):
            document = read_json(path)
            if path.stem not in _RESERVED and document is not None and isinstance(document.get("pid"), int):
                yield path.stem, document

    def live_run_files(self) -> dict[str, JsonObject]:
        """Return the run files whose process is alive."""
        return {name: document for name, document in self.run_files() if is_alive(document["pid"])}

    def open_log(self, name: str) -> int:
        """Return a descriptor that appends to the process's log; the caller closes it."""
        self.logs.mkdir(parents=True, exist_ok=True)
        path = self.log_file(name)
        with suppress(FileNotFoundError):
            if path.stat().st_size > LOG_BYTES_MAX:
                path.replace(path.with_suffix(".log.1"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def log_tail(self, name: str, lines: int = 5, start: int = 0) -> list[str]:
        """Return the last lines of a log, for error messages; only those written after byte `start`."""
        try:
            with self.log_file(name).open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(start, end - 16 * 1024))
                text = log.read().decode("utf-8", errors="replace")
        except OSError:
            return []
        return text.splitlines()[-lines:]


def acquire_lock(directory: StateDirectory) -> int:
    """Take the cluster's lock and return its descriptor (`nominee.machinery.process.file_lock`).

    Raises:
        InUseError: another cluster runs in this directory.
    """
    try:
        return file_lock.acquire(directory.lock)
    except file_lock.HeldError as error:
        pid = f" (pid {error.pid})" if error.pid else ""
        raise InUseError(f"a cluster already runs in {directory.path}{pid}") from None


def lock_holder(directory: StateDirectory) -> int | None:
    """Return the pid of the process that holds the lock, or None when no process does."""
    return file_lock.holder(directory.lock)


def clean_stale(directory: StateDirectory, modules: Mapping[str, str]) -> list[str]:
    """Remove the files that a killed cluster left; return their names. The caller holds the lock.

    `modules` are the programs of the components: a pid that now belongs to another program does not
    count.

    Raises:
        InUseError: a process without a supervisor (such as one of `honcho start`) serves from this directory.
    """

    def serving() -> dict[str, int]:
        live = directory.live_run_files()
        return {
            name: document["pid"]
            for name, document in live.items()
            if _runs_program(document["pid"], modules.get(str(document.get("component")), name))
        }

    if not wait_until(lambda: not serving(), _DYING_SECONDS_MAX):
        found = ", ".join(f"{name} (pid {pid})" for name, pid in serving().items())
        raise UnsupervisedError(f"processes not started by `nominee up` serve from {directory.path}: {found}")
    stale = [name for name, _ in directory.run_files()]
    for path in [*directory.run.glob("*.json"), *directory.run.glob(".*.tmp"), *directory.run.glob("*.tmp")]:
        path.unlink(missing_ok=True)
    if directory.cluster.exists() and not stale:
        stale = ["cluster.json"]
    directory.cluster.unlink(missing_ok=True)
    (directory.run / "supervisor.sock").unlink(missing_ok=True)
    return stale


def _runs_program(pid: int, module: str) -> bool:
    arguments = command_line(pid)
    return module in arguments or any("etcd" in argument for argument in arguments[:1] if "etcd" in module)
