"""Restrict an HTTP port on the loopback to local programs that have a token; no web page may use it.

A page that a browser has loaded from elsewhere can make it ask ports of this machine, also under a name of
the page's own that is bound again to 127.0.0.1 (DNS rebinding). Such requests say so, in Host or Origin.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""
Headers = Iterable[tuple[bytes, bytes]]
_BEARER = b"bearer "


def foreign(headers: Headers) -> str:
    """Return why a request may come from a foreign page, or ""; one with neither header does not."""
    host = origin = None
    for name, value in headers:
        if name == b"host":
            host = value.decode("latin-1")
        elif name == b"origin":
            origin = value.decode("latin-1")
    if host is not None and not _is_this_machine(host):
        return f"Host {host!r} is not this machine"
    if origin is not None and _netloc(origin) != (host or ""):
        return f"Origin {origin!r} is another"
    return ""


def _netloc(origin: str) -> str | None:
    """Return the host and port of an origin; None if it cannot be parsed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _is_this_machine(host: str) -> bool:
    """Return whether a Host header cannot be a name that a foreign site binds to this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in ("localhost", socket.gethostname().lower()):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def shows(headers: Headers, token: str) -> bool:
    """Return whether a request has a bearer token, which is never empty."""
    given = next((value for name, value in headers if name == b"authorization"), b"")
    if not token or given[: len(_BEARER)].lower() != _BEARER:
        return False
    return hmac.compare_digest(given[len(_BEARER) :].strip(), token.encode())


async def refuse(send: Send, code: int, text: str) -> None:
    """Send a whole answer in plain text."""
    body = f"{text}\n".encode("utf-8", "replace")
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def same_machine(app: App) -> App:
    """Wrap an application: requests of foreign pages are refused with 403."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        problem = foreign(scope["headers"])
        if problem:
            await refuse(send, 403, f"Forbidden: {problem}")
        else:
            await app(scope, receive, send)

    return guarded


def with_token(app: App, token: str, is_open: Callable[[str], bool], remedy: str) -> App:
    """Wrap an application: paths that are not open want `token`; `remedy` says where that is."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if is_open(scope["path"]) or shows(scope["headers"], token):
            await app(scope, receive, send)
        else:
            await refuse(send, 401, f"Unauthorized: {remedy}")

    return guarded
