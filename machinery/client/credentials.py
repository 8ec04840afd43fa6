"""What a process shows to the API server: the token of its own in D/pki, over TLS with the cluster's
authority.

The API server's run file says whether that is wanted: `ca` is the authority's certificate there. Without it
the port is plain and nobody has to say who they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from machinery.process.run_files import RunFile

ADMIN = "admin"
_EVERYWHERE = ("0.0.0.0:", "[::]:")
Metadata = tuple[tuple[str, str], ...]
Options = Sequence[tuple[str, int | str]]
# gRPC would ask the proxy of `http_proxy` for the loopback too, as Go's clients do not.
DIRECTLY = ("grpc.enable_http_proxy", 0)


@dataclass(frozen=True, slots=True)
class Credential:
    """How to reach a server that wants to know: its authority (PEM), and what to send with each call."""

    authority: bytes
    metadata: Metadata = field(repr=False)


class NoCredential(Exception):
    """The API server wants to know who asks, and there is nothing to show; the text says what is missing."""


def find(run_file: RunFile | None, directory: Path | str | None, name: str) -> Credential | None:
    """The credential of a process by its name; None where the server wants none. Raises NoCredential."""
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


def channel(address: str, credential: Credential | None, options: Options = ()) -> grpc.aio.Channel:
    """A channel to an address, secure where there is a credential, past any proxy."""
    options = [*options, DIRECTLY]
    if credential is None:
        return grpc.aio.insecure_channel(address, options=options)
    if address.startswith(_EVERYWHERE):
        # No certificate names that: it is this machine.
        options = [*options, ("grpc.ssl_target_name_override", "localhost")]
    return grpc.aio.secure_channel(
        address, grpc.ssl_channel_credentials(credential.authority), options=options
    )
