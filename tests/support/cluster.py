"""Real processes for a test: etcd, the API server, and any component, in a directory of the test's own.

    async def test_x(cluster: Cluster) -> None:
        await cluster.start("etcd", "apiserver", "scheduler")
        async with cluster.client() as client: ...
        cluster.kill("apiserver")
        await cluster.start("apiserver")

A process is ready when its run file is there. All are ended, by pid, when the test is over; the ends of their
logs are printed then, which pytest shows for a test that failed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio

from nominee.localcluster.credentials import identities
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.plan import AUTHORIZATION_MODE
from nominee.localcluster.supervisor.model.spec import ProcessSpec
from nominee.machinery.client.api_client import Client, connect
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import HttpAnswer, ServingPort, request
from nominee.machinery.runtime.clock import SystemClock
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

READY_SECONDS_MAX = PATIENCE_SECONDS
STOP_SECONDS_MAX = PATIENCE_SECONDS
WAIT_SECONDS_MAX = PATIENCE_SECONDS
_LOG_LINES_PRINTED = 60
_REPOSITORY = Path(__file__).resolve().parents[2]
_MODULES = {"etcd": "nominee.localcluster.etcd", "cloud": "nominee.autoscaler.cloud"}
# Etcd last: the others say goodbye to the API server, and that to etcd.
_STOP_LAST = ("apiserver", "etcd")


class Cluster:
    """Processes by name; what is started again has the arguments that it was given last."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        directory.mkdir(parents=True, exist_ok=True)

    def arguments(self, name: str, *arguments: str, module: str = "") -> None:
        """Set the command line of a process; `module`: its package, where the name does not give it."""
        own = module or _MODULES.get(name) or f"nominee.{name.partition('-')[0]}"
        command = [sys.executable, "-m", own, "--dir", str(self.directory)]
        if name != "etcd":
            command += ["--name", name]
        if name == "apiserver":
            # As scheduler_perf and the recordings do: most tests run no controller that creates accounts.
            command += ["--disable-admission-plugins", "ServiceAccount"]
        self._commands[name] = [*command, *arguments]

    def command(self, name: str) -> list[str]:
        """Return the command line of a process."""
        if name not in self._commands:
            self.arguments(name)
        return self._commands[name]

    def secure(self, *more: str, mode: str = AUTHORIZATION_MODE) -> Pki:
        """Make the API server authenticate its callers; set the arguments of other processes first."""
        pki = Pki(self.directory / "pki")
        processes = [
            ProcessSpec(name=name, component=name.partition("-")[0], argv=tuple(command), stop_stage=0)
            for name, command in self._commands.items()
        ]
        now = datetime.fromtimestamp(SystemClock().now(), UTC)
        pki.ensure(identities.certificates(), identities.tokens(processes), now=now)
        self.arguments("apiserver", *pki.arguments(mode), *more)
        return pki

    async def start(self, *names: str) -> list[RunFile]:
        """Start processes at once, and return when all are ready."""
        for name in names:
            self.spawn(name)
        return [await self.ready(name) for name in names]

    def spawn(self, name: str) -> None:
        """Start one process and do not wait for it."""
        running = self.processes.get(name)
        assert running is None or running.poll() is not None, f"{name} runs already"
        command = self.command(name)
        RunFile.path(self.directory, name).unlink(missing_ok=True)
        with self.log_path(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=_REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def ready(self, name: str) -> RunFile:
        """Wait for the process's run file and return it; fail with its log if it ends before."""
        process = self.processes[name]
        with anyio.move_on_after(READY_SECONDS_MAX):
            while process.poll() is None:
                found = RunFile.read(self.directory, name)
                if found is not None and found.pid == process.pid:
                    return found
                await anyio.sleep(0.01)
        status = process.poll()
        raise AssertionError(f"{name} is not ready (exit status {status}):\n{self.log(name)}")

    def run_file(self, name: str) -> RunFile:
        """Return the run file of a ready process: where it serves."""
        found = RunFile.read(self.directory, name)
        assert found is not None, f"{name} does not serve:\n{self.log(name)}"
        return found

    def port(self, name: str) -> ServingPort:
        """Return the serving port of a ready process, with the token that it requires."""
        return ServingPort.of(self.run_file(name).http, self.directory)

    def ask(self, name: str, path: str, *, method: str = "GET", body: str = "") -> HttpAnswer:
        """Send one request to the serving port of a ready process."""
        return request(self.port(name), path, method=method, body=body, timeout_seconds=WAIT_SECONDS_MAX)

    def failpoint(self, name: str, point: str, action: str) -> None:
        """Arm a failpoint of a ready process."""
        answer = self.ask(name, f"/failpoints/{point}", method="PUT", body=action)
        assert answer.status < 300, answer.text

    @asynccontextmanager
    async def client(self, user_agent: str = "test", *, batches: bool = False) -> AsyncIterator[Client]:
        """Connect a client that follows the API server when it moves; with `batches` as components do."""
        client = await connect(
            self.directory, user_agent=user_agent, batches=batches, limit_seconds=READY_SECONDS_MAX
        )
        async with client:
            yield client

    def kill(self, name: str) -> None:
        """SIGKILL, and it is gone when this returns."""
        self._end(name, signal.SIGKILL)

    async def stop(self, name: str) -> int:
        """SIGTERM; the exit status."""
        self.processes[name].terminate()
        return await self.exited(name)

    def pause(self, name: str) -> None:
        """SIGSTOP: it lives, and answers nothing."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGCONT)

    async def exited(self, name: str) -> int:
        """Wait until a process ends by itself, and return its exit status (negative: a signal)."""
        process = self.processes[name]
        await eventually(lambda: process.poll() is not None, explain=lambda: f"{name}\n{self.log(name)}")
        del self.processes[name]
        return process.returncode

    def log_path(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def log(self, name: str) -> str:
        with suppress(FileNotFoundError):
            return self.log_path(name).read_text(encoding="utf-8", errors="replace")
        return ""

    def close(self) -> None:
        """End all processes, give back etcd's disk (128 MB at least), and print the ends of the logs."""
        self._end_all()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        self._print_logs()

    def _end_all(self) -> None:
        names = sorted(self.processes, key=lambda name: _STOP_LAST.index(name) if name in _STOP_LAST else -1)
        for name in names:
            self._end(name, signal.SIGKILL)

    def _print_logs(self) -> None:
        for name in self._commands:
            lines = self.log(name).splitlines()
            print(f"--- {name}: last {min(len(lines), _LOG_LINES_PRINTED)} of {len(lines)} lines")
            print("\n".join(lines[-_LOG_LINES_PRINTED:]))

    def _end(self, name: str, number: int) -> None:
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        process.wait(STOP_SECONDS_MAX)


def pss_kib(pids: Sequence[int]) -> int:
    """Proportional memory of processes together, in KiB."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total
