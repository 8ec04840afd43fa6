"""Etcd and an API server that a test leaves running for the next one with the same command lines.

To start the two costs about a second of processor time, and hundreds of tests need them. The next test finds
the objects and files that a new cluster has; revisions and metrics go on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from aetcd.rpc import DeleteRangeRequest, KVStub, PutRequest, RangeRequest, RequestOp, TxnRequest

from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

NAMES = ("etcd", "apiserver")
_DATA = "etcd"  # etcd's folder: what is in it is reset through etcd
_LAST_WRITTEN = b"/registry/endpointslices/default/kubernetes"
_FAULTS = ("/failpoints", "/faults", "/clock")
_ANY_SIZE = (("grpc.max_receive_message_length", -1),)
_OPERATIONS_MAX = 100  # of a transaction; etcd allows 128


@dataclass(frozen=True)
class ControlPlane:
    """Two processes, and what a new cluster consists of: keys with their values (`stored`), and files."""

    directory: Path
    processes: Mapping[str, subprocess.Popen[bytes]]
    commands: Mapping[str, list[str]]
    run_files: Mapping[str, bytes]
    address: str
    port: ServingPort
    stored: Mapping[bytes, bytes]
    files: frozenset[Path]

    @classmethod
    def of(
        cls,
        directory: Path,
        processes: Mapping[str, subprocess.Popen[bytes]],
        commands: Mapping[str, list[str]],
    ) -> ControlPlane:
        """Return the control plane that has just started, as soon as its first objects are stored."""
        etcd, apiserver = (RunFile.read(directory, name) for name in NAMES)
        assert etcd is not None
        assert apiserver is not None
        port = ServingPort.of(apiserver.http, directory)
        return cls(
            directory=directory,
            processes={name: processes[name] for name in NAMES},
            commands={name: commands[name] for name in NAMES},
            run_files={name: RunFile.path(directory, name).read_bytes() for name in NAMES},
            address=etcd.grpc,
            port=port,
            stored=eventually_sync(lambda: _stored(etcd.grpc), lambda found: _LAST_WRITTEN in found),
            files=frozenset(_files(directory)),
        )

    def is_as_started(self) -> bool:
        """Return whether both processes run, and no failpoint, fault or clock of the API server is set."""
        if any(process.poll() is not None for process in self.processes.values()):
            return False
        try:
            return not _has_faults(self.port)
        except HttpError:
            return False

    def hide(self) -> None:
        """Remove the files of the test that is over, and the run files: no process finds the API server."""
        for path in set(_files(self.directory)) - self.files:
            path.unlink()
        for name in NAMES:
            RunFile.path(self.directory, name).unlink()
            os.truncate(self.directory / f"{name}.log", 0)

    def show(self) -> None:
        """Reset what is stored, and write the run files. The API server's cache may still lag behind."""
        found = _stored(self.address)
        changed = sorted(key for key in {*found, *self.stored} if found.get(key) != self.stored.get(key))
        with _etcd(self.address) as etcd:
            for start in range(0, len(changed), _OPERATIONS_MAX):
                operations = [self._reset(key) for key in changed[start : start + _OPERATIONS_MAX]]
                etcd.Txn(TxnRequest(success=operations), timeout=PATIENCE_SECONDS)
        for name, content in self.run_files.items():
            RunFile.path(self.directory, name).write_bytes(content)

    def _reset(self, key: bytes) -> RequestOp:
        if key in self.stored:
            return RequestOp(request_put=PutRequest(key=key, value=self.stored[key]))
        return RequestOp(request_delete_range=DeleteRangeRequest(key=key))

    def end(self) -> None:
        """Kill the processes, and remove their files."""
        for name in reversed(NAMES):
            self.processes[name].kill()
            self.processes[name].wait(PATIENCE_SECONDS)
            RunFile.path(self.directory, name).unlink(missing_ok=True)
        for path in self.files:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.directory / _DATA, ignore_errors=True)


@contextmanager
def _etcd(address: str) -> Iterator[KVStub]:
    with grpc.insecure_channel(address, _ANY_SIZE) as channel:
        yield KVStub(channel)


def _stored(address: str) -> dict[bytes, bytes]:
    with _etcd(address) as etcd:
        answer = etcd.Range(RangeRequest(key=b"\0", range_end=b"\0"), timeout=PATIENCE_SECONDS)
    return {pair.key: pair.value for pair in answer.kvs}


def _files(directory: Path) -> Iterator[Path]:
    """Yield the files outside etcd's folder."""
    for folder, folders, names in os.walk(directory):
        if Path(folder) == directory and _DATA in folders:
            folders.remove(_DATA)
        yield from (Path(folder, name) for name in names)


def _has_faults(port: ServingPort) -> bool:
    points, calls, clock = (
        json.loads(request(port, path, timeout_seconds=PATIENCE_SECONDS).body) for path in _FAULTS
    )
    return any(point["action"] for point in points) or bool(calls["rules"] or clock["offsetSeconds"])
