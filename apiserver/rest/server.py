"""The port of the REST front, and the kubeconfig that leads there.

Plain HTTP on loopback: everybody who can connect is admin. TLS and authentication come in at two places:
`listen` (the socket) and `FrontOptions.authenticate`.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc

from machinery.http_server import HttpServer

GRACE_SECONDS = 1
KEEP_ALIVE_SECONDS = 120
CONNECTIONS_MAX = 10_000
"""Watches count; beyond it a connection is told 503."""
_OTHER_FILES = 256
"""Files that are open besides connections: gRPC's, etcd's, logs."""
_BACKLOG = 512
KUBECONFIG = "kubeconfig"


class RestServer:
    """One port; `await group.start(server.run)`, and it serves until cancelled."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        listener: socket.socket,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        self._tls = tls
        self._listener = listener
        self.address = address_of(listener)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        server = HttpServer(self._app, grace_seconds=GRACE_SECONDS, tls=self._tls)
        # Clients keep idle connections for 90 s; one that the server closes first may cost them a request.
        server.config.timeout_keep_alive = KEEP_ALIVE_SECONDS
        server.config.limit_concurrency = min(CONNECTIONS_MAX, _open_files_max() - _OTHER_FILES)
        async with anyio.create_task_group() as group:

            async def serve() -> None:
                # Cancelled in the middle, the server would leave its connections open: it is asked to end.
                with anyio.CancelScope(shield=True):
                    await server.serve(sockets=[self._listener])
                group.cancel_scope.cancel()

            group.start_soon(serve)
            try:
                await server.opened.wait()
                task_status.started()
                await anyio.sleep_forever()
            finally:
                server.stop()


def _open_files_max() -> int:
    """How many files this process may have open, raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX * 2 if hard == resource.RLIM_INFINITY else min(CONNECTIONS_MAX * 2, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


def listen(address: str, *, preferred_port: int = 0) -> socket.socket:
    """A listening socket on `host:port`; port 0 is `preferred_port` if that is free, or any. OSError."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    wanted = [int(port)] if int(port or 0) else [*([preferred_port] if preferred_port else []), 0]
    for number in wanted:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, number))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            if number == wanted[-1]:
                raise
        else:
            return listener
    raise AssertionError("unreachable")


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def kubeconfig(server: str) -> dict[str, Any]:
    """What kubectl needs to find the server (a URL)."""
    name = "nominee"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "current-context": name,
    }


def write_kubeconfig(directory: Path, server: str) -> Path:
    """Write D/kubeconfig whole or not at all; JSON is YAML too, and needs no import."""
    path = directory / KUBECONFIG
    temporary = path.with_name(f".{KUBECONFIG}.{os.getpid()}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(kubeconfig(server), indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def last_port(directory: Path) -> int:
    """The port that D/kubeconfig names, so that a server that starts again is found where it was; 0: none."""
    try:
        document = json.loads((directory / KUBECONFIG).read_bytes())
        return urlsplit(document["clusters"][0]["cluster"]["server"]).port or 0
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0
