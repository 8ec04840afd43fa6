"""A supervisor with fake components, as a process of the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.commands.client import call
from nominee.localcluster.supervisor.directory import StateDirectory, is_alive, write_atomically
from nominee.localcluster.supervisor.model.core import Policy
from nominee.localcluster.supervisor.model.spec import ClusterSpec, ProcessSpec
from tests.support.patience import PATIENCE_SECONDS

FAKE = Path(__file__).with_name("fake_component.py")
STAGES = {"etcd": 3, "apiserver": 2, "scheduler": 1, "autoscaler": 0}
LIMIT_SECONDS = PATIENCE_SECONDS


class Supervised:
    """A running supervisor and what a test asks of it."""

    def __init__(self, directory: Path, process: subprocess.Popen[str]) -> None:
        self.state = StateDirectory(directory)
        self.process = process

    def call(self, command: str, **fields: object) -> dict[str, Any]:
        return call(self.state, command, timeout_seconds=LIMIT_SECONDS, **fields)

    def components(self) -> dict[str, dict[str, Any]]:
        return {c["name"]: c for c in self.call("status")["cluster"]["components"]}

    def pids(self) -> dict[str, int]:
        return {name: component["pid"] for name, component in self.components().items() if component["pid"]}

    def wait_component(self, name: str, **wanted: object) -> None:
        """Until the component has these fields."""

        def holds() -> bool:
            component = self.components()[name]
            return all(component.get(key) == value for key, value in wanted.items())

        assert wait_until(holds, LIMIT_SECONDS), self.components()[name]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Sends a signal and returns the exit status and all that was printed."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode, output


def all_gone(pids: Mapping[str, int]) -> bool:
    return wait_until(lambda: not any(is_alive(pid) for pid in pids.values()), LIMIT_SECONDS)


def write_plan(
    directory: Path,
    behaviour: Mapping[str, Sequence[str]],
    policy: Policy,
    ready_seconds_max: float = LIMIT_SECONDS,
) -> None:
    spec = ClusterSpec(
        directory=directory,
        processes=tuple(
            ProcessSpec(
                name=name,
                component=name,
                argv=(sys.executable, "-S", str(FAKE), str(directory), name, *how),
                stop_stage=STAGES[name],
            )
            for name, how in behaviour.items()
        ),
        policy=policy,
        ready_seconds_max=ready_seconds_max,
    )
    write_atomically(directory / "run" / "plan.json", spec.to_json())


def start(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nominee.localcluster.supervisor", "--dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def supervised(
    directory: Path,
    behaviour: Mapping[str, Sequence[str]] | None = None,
    policy: Policy | None = None,
    ready_seconds_max: float = LIMIT_SECONDS,
) -> Iterator[Supervised]:
    """A supervisor that has begun to serve its socket; killed at the end if it still runs."""
    behaviour = behaviour if behaviour is not None else dict.fromkeys(STAGES, ())
    write_plan(directory, behaviour, policy or Policy(backoff_initial=0.05), ready_seconds_max)
    process = start(directory)
    try:
        socket = directory / "run" / "supervisor.sock"
        wait_until(lambda: socket.exists() or process.poll() is not None, LIMIT_SECONDS)
        yield Supervised(directory, process)
    finally:
        process.kill()
        process.communicate()


def cluster_file(directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / "cluster.json").read_text())
    return document


def is_in_cluster_file(directory: Path, pid: int) -> bool:
    return pid in [component["pid"] for component in cluster_file(directory)["components"]]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
