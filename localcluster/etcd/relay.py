"""The relay before the peer port of an etcd member: it can cut the member's links to other members.

The other members connect to the relay. It forwards a connection to the member unless the link to the member
that connects is cut. TLS passes through. `nominee.localcluster.etcd.links` sends it commands.

`python -m nominee.localcluster.etcd.relay DIR NAME LISTEN TARGET` ends with the member, which has started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.abc

from nominee.localcluster.etcd import links as etcd_links
from nominee.localcluster.supervisor.children import before_exec
from nominee.localcluster.supervisor.commands.socket_path import reachable

CONNECTIONS_MAX: Final = 200
_CHUNK_BYTES: Final = 256 * 1024


def start(directory: Path, name: str, listen: str, target: str) -> None:
    """Start the relay of a member as a process that ends with this one, also after its exec."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "nominee.localcluster.etcd.relay",
        str(directory),
        name,
        listen,
        target,
    ]
    # This process has one thread, and has not loaded gRPC.
    subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=before_exec())


class Relay:
    """The relay of one member. `cut` has the members from which it accepts no connection."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self._open: dict[anyio.CancelScope, str] = {}
        self.cut: set[str] = set()

    async def serve(self, listen: str, target: str) -> None:
        """Forward connections, and obey commands, until cancelled."""
        # What is cut stays cut when a member is started again.
        for other in etcd_links.running(self._directory):
            if other != self._name and self._name in await anyio.to_thread.run_sync(
                etcd_links.refused_members, self._directory, other
            ):
                self.cut.add(other)
        path = etcd_links.socket_path(self._directory, self._name)
        path.unlink(missing_ok=True)
        with reachable(path) as short:
            commands = await anyio.create_unix_listener(short, mode=0o600)
        host, port = _split(listen)
        connections = await anyio.create_tcp_listener(local_host=host, local_port=port)
        async with commands, connections, anyio.create_task_group() as tasks:
            tasks.start_soon(commands.serve, self._command)
            await connections.serve(partial(self._forward, _split(target)))

    async def _forward(self, target: tuple[str, int], near: anyio.abc.SocketStream) -> None:
        """Copy both directions of a connection until one ends, or the link is cut."""
        async with near:
            member = self._connecting(near)
            if member in self.cut or len(self._open) >= CONNECTIONS_MAX:
                return
            with suppress(OSError), anyio.CancelScope() as scope:
                self._open[scope] = member
                try:
                    async with await anyio.connect_tcp(*target) as far, anyio.create_task_group() as tasks:
                        for source, sink in ((near, far), (far, near)):
                            tasks.start_soon(_copy, source, sink, scope)
                finally:
                    del self._open[scope]

    def _connecting(self, near: anyio.abc.SocketStream) -> str:
        """Return the member that has opened a connection, "" if it is no member."""
        its, own = (
            near.extra(anyio.abc.SocketAttribute.remote_port),
            near.extra(anyio.abc.SocketAttribute.local_port),
        )
        socket = _inode(its, own)
        for name, pid in etcd_links.pids(self._directory).items():
            if socket and _has_open(pid, f"socket:[{socket}]"):
                return name
        return ""

    async def _command(self, client: anyio.abc.SocketStream) -> None:
        """Cut or heal links, and answer which are cut."""
        async with client:
            with suppress(OSError, ValueError, anyio.EndOfStream):
                request = json.loads(await client.receive(etcd_links.MESSAGE_BYTES_MAX))
                self.cut |= {*request.get("cut", ())}
                self.cut -= {*request.get("heal", ())}
                for scope, member in self._open.items():
                    if member in self.cut:
                        scope.cancel()
                await client.send(json.dumps({"cut": sorted(self.cut)}).encode() + b"\n")


async def _copy(
    source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream, scope: anyio.CancelScope
) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await sink.send(await source.receive(_CHUNK_BYTES))
    scope.cancel()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _inode(port: int, to: int) -> str:
    """Return the inode of this machine's TCP socket with these ports, or ""."""
    local, remote = f":{port:04X}", f":{to:04X}"
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(local) and fields[2].endswith(remote):
            return fields[9]
    return ""


def _has_open(pid: int, link: str) -> bool:
    """Return whether a process has a file open; files of other users are not seen."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as files:
            for file in files:
                with suppress(OSError):
                    if os.readlink(file.path) == link:
                        return True
    except OSError:
        pass
    return False


def main(directory: str, name: str, listen: str, target: str) -> None:
    """Run the relay of a member."""
    relay = Relay(Path(directory), name)
    anyio.run(relay.serve, listen, target, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(*sys.argv[1:])
