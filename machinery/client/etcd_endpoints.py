"""Parse etcd's endpoints as a user writes them."""

from __future__ import annotations


def endpoints(text: str) -> list[str]:
    """Parse `http://a:2379,http://b:2379` (or without the scheme) to `host:port`s. Raises: ValueError."""
    return [_endpoint(part.strip()) for part in text.split(",") if part.strip()]


def _endpoint(text: str) -> str:
    scheme, separator, rest = text.rpartition("://")
    if separator and scheme not in ("http", "https"):
        raise ValueError(f"{text}: etcd is asked over http:// or https://, not {scheme}://")
    found = rest.rstrip("/")
    host, _, port = found.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"{text}: write HOST:PORT or http://HOST:PORT")
    return found
