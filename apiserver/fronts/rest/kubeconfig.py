"""Kubeconfig files: the server's address and the clients' credentials."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME = "kubeconfig"
ADMIN = "admin"
_CLUSTER = "nominee"


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The PEM files of a client certificate and its key, and the server's certificate authority."""

    authority: Path
    certificate: Path
    key: Path = field(repr=False)

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the fields that they add to `cluster` and `user`.

        Raises: OSError.
        """
        return (
            {"certificate-authority-data": _data(self.authority)},
            {"client-certificate-data": _data(self.certificate), "client-key-data": _data(self.key)},
        )


def kubeconfig(server: str, user: str = ADMIN, files: ClientFiles | None = None) -> dict[str, Any]:
    """Return the document for a server (a URL)."""
    of_cluster, of_user = files.read() if files is not None else ({}, {})
    # A server on all addresses is reachable on loopback.
    server = server.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CLUSTER, "cluster": {"server": server, **of_cluster}}],
        "users": [{"name": user, "user": of_user}],
        "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": user}}],
        "current-context": _CLUSTER,
    }


def write(path: Path, document: dict[str, Any]) -> Path:
    """Write a file atomically, readable by its owner only; JSON is YAML, too, and needs no import."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def write_all(
    directory: Path, server: str, authority: Path | None, clients: Path | None, *, name: str = NAME
) -> None:
    """Write D/kubeconfig for the admin, and NAME.kubeconfig beside each other client's NAME.crt.

    With another `name` only the admin's file, D/name, is written.
    """
    if authority is None or clients is None:
        write(directory / name, kubeconfig(server))
        return
    for certificate in sorted(clients.glob("*.crt")):
        user = certificate.stem
        if user != ADMIN and name != NAME:
            continue
        files = ClientFiles(authority, certificate, certificate.with_suffix(".key"))
        path = directory / name if user == ADMIN else certificate.with_suffix(f".{NAME}")
        write(path, kubeconfig(server, user, files))


def last_port(directory: Path, name: str = NAME) -> int:
    """Return the port in D/kubeconfig, so that a restarted server keeps its address; 0 without one."""
    try:
        document = json.loads((directory / name).read_bytes())
        return urlsplit(document["clusters"][0]["cluster"]["server"]).port or 0
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
