"""Finding, choosing and starting etcd."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.localcluster.etcd import server as etcd
from nominee.localcluster.etcd.server import EtcdAddresses, EtcdBinary, EtcdError
from nominee.machinery.process.run_files import RunFile, is_alive
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS


def binary(*version: int) -> EtcdBinary:
    return EtcdBinary(Path("/x/etcd"), (version[0], version[1], version[2]))


@pytest.mark.parametrize(
    ("version", "loses"),
    [((3, 4, 23), False), ((3, 5, 0), True), ((3, 5, 2), True), ((3, 5, 3), False), ((3, 6, 0), False)],
)
def test_versions_that_lose_writes(version: tuple[int, int, int], loses: bool) -> None:
    found = EtcdBinary(Path("/x/etcd"), version)
    assert found.loses_writes is loses
    assert bool(found.warning) is loses


def test_a_binary_that_keeps_its_promises_is_preferred() -> None:
    assert etcd.choose([binary(3, 5, 1), binary(3, 4, 23), binary(3, 6, 1)]) == binary(3, 4, 23)
    assert etcd.choose([binary(3, 5, 1), binary(3, 5, 0)]) == binary(3, 5, 1)
    assert etcd.choose([]) is None


def _fake(directory: Path, text: str) -> Path:
    directory.mkdir()
    fake = directory / "etcd"
    fake.write_text(f"#!/bin/sh\necho '{text}'\n")
    fake.chmod(0o755)
    return fake


@pytest.mark.processes
def test_every_etcd_on_the_path_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path / "a", "etcd Version: 3.5.1")
    good = _fake(tmp_path / "b", "etcd Version: 3.4.23")
    _fake(tmp_path / "c", "something else")
    # The kernel says no to the first, as it does to who may not look into a folder.
    monkeypatch.delenv(etcd.VARIABLE, raising=False)
    path = ["/" + "x" * 300, *(str(tmp_path / name) for name in "acb"), "/usr/bin", "/bin"]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    assert etcd.find() == EtcdBinary(good, (3, 4, 23))


@pytest.mark.processes
def test_the_environment_names_an_etcd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = _fake(tmp_path / "named", "etcd Version: 3.5.1")
    given = _fake(tmp_path / "given", "etcd Version: 3.5.2")
    monkeypatch.setenv(etcd.VARIABLE, str(named))
    assert etcd.find() == EtcdBinary(named, (3, 5, 1))
    assert etcd.find(str(given)) == EtcdBinary(given, (3, 5, 2))
    monkeypatch.setenv(etcd.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(EtcdError, match="none is not an etcd binary"):
        etcd.find()


def test_what_starts_etcd_runs_with_every_etcd(
    own_etcd: ThrowawayEtcd, request: pytest.FixtureRequest
) -> None:
    """The marker, which `make test-wheel-etcd` selects, is set."""
    assert own_etcd.address
    assert request.node.get_closest_marker("etcd") is not None


@pytest.mark.processes
def test_what_is_no_etcd_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EtcdError, match="is not an etcd binary that runs"):
        etcd.find(str(_fake(tmp_path / "a", "hello")))
    with pytest.raises(EtcdError, match="is not an etcd binary that runs"):
        etcd.find(str(tmp_path / "none"))


def test_addresses_are_kept_while_they_are_free(tmp_path: Path) -> None:
    first = etcd.addresses(tmp_path / "data")
    assert first.client != first.peer
    assert etcd.addresses(tmp_path / "data") == first


def test_etcds_ports_are_not_the_kernels_to_give_away() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    ports = [int(address.rpartition(":")[2]) for address in etcd.free_addresses(4)]
    assert len(set(ports)) == 4
    assert all(port < first for port in ports)


@pytest.mark.parametrize(
    ("written_by", "refused"),
    [("3.5.1", False), ("3.4.30", False), ("3.6.0", True), ("4.0.0", True), ("nonsense", False), ("", False)],
)
def test_the_data_of_a_newer_etcd_is_refused(tmp_path: Path, written_by: str, refused: bool) -> None:
    if written_by:
        (tmp_path / "version").write_text(f"{written_by}\n", encoding="utf-8")
    if not refused:
        etcd.check_data(tmp_path, binary(3, 5, 9))
        return
    with pytest.raises(EtcdError, match=f"written by etcd {written_by}, and etcd 3.5.9 .* cannot read it"):
        etcd.check_data(tmp_path, binary(3, 5, 9))


def test_fsync_is_given_up_only_where_etcd_can(tmp_path: Path) -> None:
    at = EtcdAddresses("127.0.0.1:1", "127.0.0.1:2")
    assert "--unsafe-no-fsync" not in etcd.arguments(binary(3, 5, 9), tmp_path, at)
    assert "--unsafe-no-fsync" in etcd.arguments(binary(3, 5, 9), tmp_path, at, no_fsync=True)
    with pytest.raises(EtcdError, match="does not support"):
        etcd.arguments(binary(3, 4, 23), tmp_path, at, no_fsync=True)


def test_the_process_is_etcd_itself_and_comes_back_at_its_address(own_etcd: ThrowawayEtcd) -> None:
    run_file = RunFile.read(own_etcd.directory, "etcd")
    assert run_file is not None
    assert own_etcd.process is not None
    assert run_file.pid == own_etcd.process.pid
    assert b"etcd" in Path(f"/proc/{run_file.pid}/cmdline").read_bytes().split(b"\0")[0]
    own_etcd.kill()
    assert (own_etcd.directory / "etcd" / "version").read_text(encoding="utf-8").strip()
    assert RunFile.read(own_etcd.directory, "etcd") is None
    own_etcd.start()
    assert own_etcd.address == run_file.grpc


def test_a_second_one_in_the_same_directory_is_refused(own_etcd: ThrowawayEtcd) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "nominee.localcluster.etcd", "--dir", str(own_etcd.directory)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert second.returncode == 1
    assert "runs already" in second.stderr


def test_etcd_dies_with_its_parent(tmp_path: Path) -> None:
    # A parent of its own, which starts etcd, says its pid when it serves, and waits to be killed.
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from tests.support.etcd import ThrowawayEtcd\n"
            "one = ThrowawayEtcd(pathlib.Path(sys.argv[1])); one.start()\n"
            "print(one.process.pid, flush=True); sys.stdin.read()",
            str(tmp_path / "orphan"),
        ],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    waiter = os.pidfd_open(pid)
    parent.send_signal(signal.SIGKILL)
    parent.communicate(timeout=PATIENCE_SECONDS)
    try:
        assert select.select([waiter], [], [], PATIENCE_SECONDS)[0], "etcd outlived its parent"
    finally:
        os.close(waiter)
