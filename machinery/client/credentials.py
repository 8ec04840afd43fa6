"""Credentials of a process for the API server: the token of its own in D/pki, over TLS with the cluster's
authority.

The API server's run file says whether that is wanted: `ca` is the authority's certificate there. Without it
the port is plain and no client has to authenticate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from nominee.machinery.client.calls import transport
from nominee.machinery.process.run_files import RunFile

ADMIN = "admin"
_EVERYWHERE = ("0.0.0.0:", "[::]:")
Metadata = tuple[tuple[str, str], ...]
Options = Sequence[tuple[str, int | str]]
# gRPC would ask the proxy of `http_proxy` for the loopback too, as Go's clients do not.
DIRECTLY = ("grpc.enable_http_proxy", 0)


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential for a server that authenticates: its authority (PEM), and the headers of each call."""

    authority: bytes
    metadata: Metadata = field(default=(), repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)


class NoCredential(Exception):
    """The API server authenticates clients, and there is no credential; the text names the missing file."""


def find(run_file: RunFile | None, directory: Path | str | None, name: str) -> Credential | None:
    """Return the credential of a process by its name; None where the server does not authenticate.

    Raises:
        NoCredential: the server authenticates, and there is no credential of that name.
    """
    if run_file is None or directory is None or not run_file.document.get("ca"):
        return None
    path = Path(directory, "pki", "clients", f"{name}.token")
    try:
        token = path.read_text(encoding="ascii").strip()
        authority = Path(str(run_file.document["ca"])).read_bytes()
    except OSError as error:
        raise NoCredential(
            f"the API server wants to know who {name} is: {error.filename}: {error.strerror}"
        ) from None
    return Credential(authority, (("authorization", f"Bearer {token}"),))


def certificate_paths(directory: Path | str, name: str) -> tuple[Path, Path]:
    """Return where a client's certificate and its key are."""
    clients = Path(directory, "pki", "clients")
    return clients / f"{name}.crt", clients / f"{name}.key"


def find_certificate(run_file: RunFile | None, directory: Path | str, name: str) -> Credential | None:
    """Return the client certificate of a name; None where the server does not authenticate.

    Raises:
        NoCredential: the server authenticates, and there is no certificate of that name.
    """
    if run_file is None or not run_file.document.get("ca"):
        return None
    try:
        certificate, key = (path.read_bytes() for path in certificate_paths(directory, name))
        authority = Path(str(run_file.document["ca"])).read_bytes()
    except OSError as error:
        problem = f"{run_file.name} wants a certificate of {name}"
        raise NoCredential(f"{problem}: {error.filename}: {error.strerror}") from None
    return Credential(authority, certificate=certificate, key=key)


def channel(address: str, credential: Credential | None, options: Options = ()) -> grpc.aio.Channel:
    """Return a channel to an address, secure where there is a credential, past any proxy."""
    options = [*options, DIRECTLY]
    if credential is None:
        return transport.current().channel(address, None, options)
    if address.startswith(_EVERYWHERE):
        # No certificate names that: it is this machine.
        options = [*options, ("grpc.ssl_target_name_override", "localhost")]
    shown = grpc.ssl_channel_credentials(credential.authority, credential.key, credential.certificate)
    return transport.current().channel(address, shown, options)
