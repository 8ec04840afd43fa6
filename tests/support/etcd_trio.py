"""A throwaway etcd of three members."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nominee.localcluster.etcd import server as nominee_etcd
from tests.support.patience import PATIENCE_SECONDS

START_SECONDS_MAX = PATIENCE_SECONDS
_NAMES = ("a", "b", "c")
# Becomes etcd after asking to die with this process.
_WRAPPER = (
    "import os, sys; from nominee.machinery.process.parent_death import die_with_parent;"
    " die_with_parent(); os.execv(sys.argv[1], sys.argv[1:])"
)


class EtcdTrio:
    """Three members on loopback; each can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        found = nominee_etcd.free_addresses(2 * len(_NAMES))
        self._addresses = {
            name: nominee_etcd.EtcdAddresses(found[2 * index], found[2 * index + 1])
            for index, name in enumerate(_NAMES)
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._binary = nominee_etcd.find()

    @property
    def servers(self) -> list[str]:
        return [at.client for at in self._addresses.values()]

    def name_at(self, client: str) -> str:
        return next(name for name, at in self._addresses.items() if at.client == client)

    def start(self, *names: str) -> None:
        """Start members (all if none is named); returns when they are healthy."""
        cluster = ",".join(f"{name}=http://{at.peer}" for name, at in self._addresses.items())
        for name in names or _NAMES:
            data = self._directory / name
            data.mkdir(parents=True, exist_ok=True)
            command = nominee_etcd.arguments(
                self._binary, data, self._addresses[name], name=name, cluster=cluster
            )
            with (data / "log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    [sys.executable, "-c", _WRAPPER, *command],
                    cwd=Path(__file__).parents[2],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        for name in names or _NAMES:
            healthy = nominee_etcd.wait_healthy(
                self._addresses[name].client, self._processes[name].pid, limit_seconds=START_SECONDS_MAX
            )
            if not healthy:
                log_text = (self._directory / name / "log").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"etcd member {name} is not healthy:\n{log_text}")

    def kill(self, name: str) -> None:
        """SIGKILL one member."""
        process = self._processes.pop(name)
        process.kill()
        process.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        """Kill all three and delete their data, but not their logs."""
        for name in list(self._processes):
            self.kill(name)
        for name in _NAMES:
            shutil.rmtree(self._directory / name / "member-data", ignore_errors=True)


@pytest.fixture
def etcd_trio(tmp_path: Path) -> Iterator[EtcdTrio]:
    """Three members that run."""
    trio = EtcdTrio(tmp_path / "trio")
    try:
        trio.start()
        yield trio
    finally:
        trio.stop()
