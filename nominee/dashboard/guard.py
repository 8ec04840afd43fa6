"""Who may use the dashboard: a browser on this machine that has opened the URL with the token.

The token becomes a cookie that no script can read. A page from elsewhere can make the browser send requests,
but not without naming itself in Host, Origin or Sec-Fetch-Site; an action takes a second token, which only
the page itself can read.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from nominee.machinery.process.http.http_guard import App, Message, Receive, Scope, Send
from nominee.machinery.process.serving_port.serving_token import derive

HEALTH: Final = "/healthz"
_API: Final = b"/api/"
_PORTS: Final = range(20_000, 30_000)
"""Below those that Linux gives to a program that asks for a free one."""
_NAMES: Final = ("127.0.0.1", "localhost")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The token of the URL, and those derived from it: a process that is started again knows its pages."""

    token: str

    @property
    def session(self) -> str:
        """Return the value of the cookie."""
        return derive(self.token, "session")

    @property
    def action(self) -> str:
        """Return the token that the page shows with an action."""
        return derive(self.token, "action")

    @property
    def port(self) -> int:
        """Return the port that a dashboard of this token takes if it is free: open pages find it again."""
        return _PORTS[0] + int(derive(self.token, "port")[:8], 16) % len(_PORTS)


@dataclass(frozen=True, slots=True)
class Guard:
    """Wraps an application, which it protects. `port` is the one that a browser connects to."""

    app: App
    secrets: Secrets
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        headers: dict[bytes, bytes] = dict(scope["headers"])
        path: str = scope["path"]
        if path == HEALTH:
            await _answer(send_with_headers, 200, "ok")
            return
        problem = self._foreign(headers, path)
        if problem:
            await _answer(send_with_headers, 403, problem)
            return
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if path == "/" and token:
            if hmac.compare_digest(token.encode(), self.secrets.token.encode()):
                await self._open(send_with_headers)
            else:
                await _answer(send_with_headers, 401, _REMEDY)
        elif hmac.compare_digest(self._cookie(headers), self.secrets.session.encode()):
            await self.app(scope, receive, send_with_headers)
        else:
            await _answer(send_with_headers, 401, _REMEDY)

    def _foreign(self, headers: dict[bytes, bytes], path: str) -> str:
        """Return why a request may come from a foreign page, or ""."""
        host = headers.get(b"host", b"").decode("latin-1")
        if host not in {f"{name}:{self.port}" for name in _NAMES}:
            return f"Host {host!r} is not this dashboard"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1") != f"http://{host}":
            return f"Origin {origin.decode('latin-1')!r} is another"
        # Another port of this machine is the same site, and gets the cookie.
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in (b"none", b"same-origin") and path.encode("utf-8", "replace").startswith(_API):
            return "the request comes from another page"
        return ""

    async def _open(self, send: Send) -> None:
        """Give the browser the cookie."""
        cookie = f"{self._name}={self.secrets.session}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _cookie(self, headers: dict[bytes, bytes]) -> bytes:
        try:
            found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(self._name)
        except CookieError:
            return b""
        return found.value.encode() if found is not None else b""

    @property
    def _name(self) -> str:
        """Return the cookie's name: ports of a host share their cookies."""
        return f"nominee-dashboard-{self.port}"


_REMEDY: Final = (
    "open the URL with the token that `nominee dashboard` or `nominee up --dashboard` has printed"
)


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"message": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
