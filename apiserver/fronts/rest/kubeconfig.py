"""Kubeconfigs: how kubectl, clients and real components find the server, and what they show to it."""

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
    """A client certificate's PEM files, and the authority of the server's."""

    authority: Path
    certificate: Path
    key: Path = field(repr=False)

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """What they add to `cluster` and `user`. OSError."""
        return (
            {"certificate-authority-data": _data(self.authority)},
            {"client-certificate-data": _data(self.certificate), "client-key-data": _data(self.key)},
        )


def kubeconfig(server: str, user: str = ADMIN, files: ClientFiles | None = None) -> dict[str, Any]:
    """The document for a server (a URL)."""
    of_cluster, of_user = files.read() if files is not None else ({}, {})
    # Who listens everywhere is found here.
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
    """Whole or not at all, for the owner alone; JSON is YAML too, and needs no import."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def write_all(directory: Path, server: str, authority: Path | None, clients: Path | None) -> None:
    """D/kubeconfig for the admin; for each other NAME.crt in `clients` a NAME.kubeconfig beside it."""
    if authority is None or clients is None:
        write(directory / NAME, kubeconfig(server))
        return
    for certificate in sorted(clients.glob("*.crt")):
        user = certificate.stem
        files = ClientFiles(authority, certificate, certificate.with_suffix(".key"))
        path = directory / NAME if user == ADMIN else certificate.with_suffix(f".{NAME}")
        write(path, kubeconfig(server, user, files))


def last_port(directory: Path) -> int:
    """The port that D/kubeconfig names, so that a server that starts again is found where it was; 0: none."""
    try:
        document = json.loads((directory / NAME).read_bytes())
        return urlsplit(document["clusters"][0]["cluster"]["server"]).port or 0
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
