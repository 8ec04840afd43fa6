"""The etcd of a cluster that is down, started for reading only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from nominee import etcd
from nominee.supervisor.clock import wait_until
from nominee.supervisor.directory import InUseError, StateDirectory, acquire_lock
from nominee.verify.settings import read_plan

_STOP_SECONDS_MAX: Final = 10.0
_COMPONENT: Final = "etcd"


class EtcdAloneError(Exception):
    """The etcd cannot be started; the message says what to do."""


def has_data(directory: Path) -> bool:
    """Return whether a cluster with an etcd of its own was in the directory."""
    return (directory / "etcd" / "member-data").is_dir()


@contextmanager
def etcd_alone(directory: Path) -> Iterator[None]:
    """Run the etcd of a state directory, and keep `nominee up` from starting there meanwhile. It blocks.

    Raises:
        EtcdAloneError: a cluster runs there, or etcd does not start.
    """
    import os

    state = StateDirectory(directory)
    try:
        lock = acquire_lock(state)
    except (InUseError, OSError) as error:
        raise EtcdAloneError(str(error)) from None
    try:
        log = state.open_log(_COMPONENT)
        start = state.log_file(_COMPONENT).stat().st_size
        process = subprocess.Popen(_command(directory), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(log)
        try:
            if not wait_until(lambda: _answers(state, process), etcd.READY_SECONDS_MAX):
                lines = "\n".join(state.log_tail(_COMPONENT, start=start))
                raise EtcdAloneError(f"etcd does not start; its log ends:\n{lines}")
            yield
        finally:
            _stop(process)
            with suppress(OSError):
                state.run_file(_COMPONENT).unlink()
    finally:
        os.close(lock)


def _command(directory: Path) -> list[str]:
    """Return the command of the last `nominee up`, or the one that fits the directory."""
    plan = read_plan(directory)
    for spec in plan.processes if plan is not None else ():
        if spec.component == _COMPONENT:
            return list(spec.argv)
    command = [sys.executable, "-P", "-m", "nominee.etcd", "--dir", str(directory)]
    certificates = directory / "pki" / "etcd"
    return [*command, "--certificates", str(certificates)] if certificates.is_dir() else command


def _answers(state: StateDirectory, process: subprocess.Popen[bytes]) -> bool:
    document = state.live_run_files().get(_COMPONENT)
    if document is not None and document["pid"] == process.pid:
        return True
    if process.poll() is not None:
        lines = "\n".join(state.log_tail(_COMPONENT))
        raise EtcdAloneError(f"etcd ended; its log ends:\n{lines}")
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_SECONDS_MAX)
