"""A throwaway etcd for tests: the real binary, started as `nominee.localcluster.etcd` starts it.

Fixtures: `etcd` is one process for the whole session, emptied before each test; `own_etcd` is a test's own,
which it may kill and start again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from aetcd.rpc import DeleteRangeRequest, KVStub

from nominee.localcluster.etcd import server as nominee_etcd
from nominee.machinery.runtime.clock import SystemClock
from tests.support.patience import PATIENCE_SECONDS

START_SECONDS_MAX = PATIENCE_SECONDS
STOP_SECONDS_MAX = PATIENCE_SECONDS
_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class ThrowawayEtcd:
    """An etcd in a directory, with D/run/etcd.json as components expect it."""

    directory: Path
    process: subprocess.Popen[bytes] | None = field(default=None)
    address: str = ""

    def start(self) -> None:
        """Start it, or start it again on the same data and address; returns when it answers."""
        assert self.process is None, "already running"
        self.directory.mkdir(parents=True, exist_ok=True)
        run_file = self.directory / "run" / "etcd.json"
        run_file.unlink(missing_ok=True)
        with (self.directory / "etcd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nominee.localcluster.etcd", "--dir", str(self.directory)],
                cwd=_REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        clock = SystemClock()
        deadline = clock.monotonic() + START_SECONDS_MAX
        while not run_file.exists():
            if self.process.poll() is not None or clock.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"etcd did not start:\n{self.log()}")
            threading.Event().wait(0.01)
        self.address = json.loads(run_file.read_text(encoding="utf-8"))["grpc"]

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send it a signal (SIGSTOP, SIGCONT)."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def _end(self, number: int) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS_MAX)

    def discard(self) -> None:
        """Kill the process and delete its data (128 MB at least), but not its log."""
        self.kill()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def wipe(self) -> None:
        """Delete every key (the revision goes on)."""
        with grpc.insecure_channel(self.address) as channel:
            KVStub(channel).DeleteRange(
                DeleteRangeRequest(key=b"\0", range_end=b"\0"), timeout=PATIENCE_SECONDS
            )

    def log(self) -> str:
        """Return the output of the process."""
        return (self.directory / "etcd.log").read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="session")
def _session_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThrowawayEtcd]:
    server = ThrowawayEtcd(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.discard()


@pytest.fixture
def etcd(_session_etcd: ThrowawayEtcd) -> ThrowawayEtcd:
    """Return the etcd of the session, empty; do not stop it."""
    _session_etcd.wipe()
    return _session_etcd


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[ThrowawayEtcd]:
    """Yield an etcd of this test alone, which it may kill and start."""
    server = ThrowawayEtcd(tmp_path / "own-etcd")
    server.start()
    yield server
    server.discard()


def pytest_report_header() -> str:
    """Name the etcd that the tests start."""
    try:
        binary = nominee_etcd.find()
    except nominee_etcd.EtcdError as error:
        return f"etcd: {error}"
    return f"etcd: {binary.version_text}, {binary.path}"


def up_warning() -> str:
    """Return what the first `nominee up` in a directory prints about the etcd of this machine; often ""."""
    warning = nominee_etcd.find().warning
    return f"warning: {warning}\n" if warning else ""


def skip_if_etcd_loses_writes() -> None:
    """Skip a test that kills etcd under load where the only etcd here may then lose a committed write."""
    binary = nominee_etcd.find()
    if binary.loses_writes:
        pytest.skip(binary.warning)
