"""The credential for the processes' serving ports: one token a cluster, in D/pki/serving.token (0600).

An account of this machine that cannot read the state directory must not read metrics, look into a process or
arm a failpoint through the loopback. The first process that needs the token makes it.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_BYTES = 32


def path(directory: Path | str) -> Path:
    """Return the token's file below a state directory."""
    return Path(directory, "pki", "serving.token")


def read(directory: Path | str) -> str:
    """Return the token, or "" where it does not exist or may not be read."""
    try:
        return path(directory).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def ensure(directory: Path | str) -> str:
    """Return the token, and create it where it does not exist.

    Processes that create it at the same time get the same token.

    Raises:
        OSError: the file cannot be written.
    """
    file = path(directory)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():
        own = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        own.unlink(missing_ok=True)
        with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
            made.write(secrets.token_urlsafe(_BYTES))
        try:
            # Whole or not at all, and never over another process's.
            with suppress(FileExistsError):
                os.link(own, file)
        finally:
            own.unlink(missing_ok=True)
    return file.read_text(encoding="ascii").strip()


def derive(token: str, purpose: str) -> str:
    """Return the token for a purpose, from which the original cannot be computed."""
    return hmac.new(token.encode(), purpose.encode(), sha256).hexdigest()
