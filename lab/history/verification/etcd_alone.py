"""The etcd of a cluster that is down, started for reading only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from nominee.lab.history.connection import read_plan
from nominee.localcluster.etcd import members as etcd_members
from nominee.localcluster.etcd import server as etcd
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import InUseError, StateDirectory, acquire_lock

_STOP_SECONDS_MAX: Final = 10.0
_COMPONENT: Final = "etcd"


class EtcdAloneError(Exception):
    """The etcd cannot be started; the message has the remedy."""


def has_data(directory: Path) -> bool:
    """Return whether a cluster with an etcd of its own was in the directory."""
    return etcd_members.members_in(directory / "etcd") > 0


@contextmanager
def etcd_alone(directory: Path) -> Iterator[None]:
    """Run the etcd of a state directory, and keep `nominee up` from starting there meanwhile. It blocks.

    Raises:
        EtcdAloneError: a cluster runs there, or etcd does not start.
    """
    state = StateDirectory(directory)
    try:
        lock = acquire_lock(state)
    except (InUseError, OSError) as error:
        raise EtcdAloneError(str(error)) from None
    members = _commands(directory)
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        ends = {name: _log_size(state, name) for name in members}
        for name, command in members.items():
            log = state.open_log(name)
            running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            os.close(log)
        if not wait_until(lambda: _answer(state, running), etcd.READY_SECONDS_MAX):
            lines = "\n".join(line for name, end in ends.items() for line in state.log_tail(name, start=end))
            raise EtcdAloneError(f"etcd does not start; its log ends:\n{lines}")
        yield
    finally:
        for process in running.values():
            _stop(process)
        for name in running:
            with suppress(OSError):
                state.run_file(name).unlink()
        os.close(lock)


def _commands(directory: Path) -> dict[str, list[str]]:
    """Return the commands of the last `nominee up`, or those that fit the directory, by process name."""
    plan = read_plan(directory)
    found = {
        spec.name: list(spec.argv)
        for spec in (plan.processes if plan is not None else ())
        if spec.component == _COMPONENT
    }
    if found:
        return found
    command = [sys.executable, "-P", "-m", "nominee.localcluster.etcd", "--dir", str(directory)]
    certificates = directory / "pki" / "etcd"
    if certificates.is_dir():
        command += ["--certificates", str(certificates)]
    count = etcd_members.members_in(directory / "etcd")
    if count <= 1:
        return {_COMPONENT: command}
    return {name: [*command, "--name", name, "--members", str(count)] for name in etcd_members.names(count)}


def _log_size(state: StateDirectory, name: str) -> int:
    log = state.open_log(name)
    try:
        return os.fstat(log).st_size
    finally:
        os.close(log)


def _answer(state: StateDirectory, running: Mapping[str, subprocess.Popen[bytes]]) -> bool:
    """Return whether all members serve.

    Raises:
        EtcdAloneError: one has ended.
    """
    live = state.live_run_files()
    for name, process in running.items():
        if process.poll() is not None:
            lines = "\n".join(state.log_tail(name))
            raise EtcdAloneError(f"{name} ended; its log ends:\n{lines}")
    return all(name in live and live[name]["pid"] == process.pid for name, process in running.items())


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_SECONDS_MAX)
