"""HTTP requests and responses over ASGI: a request's query, headers and body; a response or a stream."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

from nominee.apiserver.chain import problems
from nominee.apiserver.chain.request import ClientGone
from nominee.apiserver.chain.results import OwnResult
from nominee.apiserver.fronts.rest.http import compression
from nominee.apiserver.fronts.rest.http.media import JSON
from nominee.machinery.api import errors

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_DIGITS = 30
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_WARNINGS_LENGTH_MAX, _WARNING_LENGTH_MAX = 4096, 256
BODY_SECONDS_MAX = 60.0
"""The limit for receiving a body (kube-apiserver's `--request-timeout`)."""
SEND_SECONDS_MAX = 60.0
"""The limit for sending a response; after it the connection is dropped."""
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def parse_int64(text: str) -> int:
    """Return a query parameter as a number.

    Raises: StatusError 400, in Go's words.
    """
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(text) <= _INT64_DIGITS else 1 << 63
    if not -(1 << 63) <= value < 1 << 63:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


class Request:
    """One HTTP request; its body is read on demand."""

    def __init__(self, scope: Message, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.scope = scope
        self.receive = receive
        # Whether a part of the body is unread.
        self.unread = False

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name; the last one counts, but Accept lines are joined."""
        made: dict[str, str] = {}
        for name, value in self.scope["headers"]:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            made[key] = f"{made[key]},{text}" if key == "accept" and key in made else text
        return made

    @cached_property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)

    @property
    def is_well_encoded(self) -> bool:
        """Whether each % of the path begins an escape; the path itself is already decoded."""
        return _BROKEN_ESCAPE.search(self.scope.get("raw_path") or b"") is None

    def query_value(self, name: str) -> str:
        """Return a query parameter's first value, or ""."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Report whether a query parameter is present and not false; an empty value counts as true."""
        return bool(self.query.get(name)) and self.query_value(name).lower() not in ("0", "false")

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    @cached_property
    def pretty(self) -> bool:
        """Whether a person reads the response, as with curl."""
        asked = self.query_value("pretty")
        if asked:
            return asked in _TRUE
        return self.header("user-agent").startswith(("curl", "Wget", "Mozilla/5.0"))

    async def body(self) -> bytes:
        """Return the whole body.

        Raises: StatusError 413 beyond the limit, 504 when it is slow; ClientGone when it ends early.
        """
        length = self.header("content-length")
        self.unread = True
        if length.isdecimal() and int(length[:20]) > problems.BODY_BYTES_MAX:
            raise problems.too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                body = await self._read()
        except TimeoutError:
            raise problems.too_slow() from None
        self.unread = False
        return body

    async def _read(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > problems.BODY_BYTES_MAX:
                raise problems.too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def gone(self) -> None:
        """Wait until the client disconnects."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass(slots=True)
class Answer(OwnResult):
    """A response with a body, or with `pieces` that are sent as they are made."""

    body: bytes = b""
    code: int = 200
    content_type: str = JSON
    warnings: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    pieces: AsyncIterator[bytes] | None = None

    def start(self) -> Message:
        """Return the ASGI message that starts the response."""
        headers = [
            (b"content-type", self.content_type.encode("latin-1")),
            *(
                (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in {"cache-control": "no-cache, private", **self.headers}.items()
            ),
            *((b"warning", _warning(text)) for text in _limited(self.warnings)),
        ]
        if self.pieces is None:
            headers.append((b"content-length", str(len(self.body)).encode()))
        return {"type": "http.response.start", "status": self.code, "headers": headers}

    async def send(self, send: Send, *, gzip: bool = False) -> None:
        """Send the response, a long one compressed if `gzip`.

        Raises: TimeoutError for a client that does not read.
        """
        if gzip and "content-encoding" not in self.headers:
            await self._compress()
        async with asyncio.timeout(SEND_SECONDS_MAX):
            await self._send(send)

    async def _compress(self) -> None:
        packed = True
        if self.pieces is not None:
            self.pieces, packed = await compression.of_pieces(self.pieces)
        elif (body := compression.of_body(self.body)) is not None:
            self.body = body
        else:
            packed = False
        if packed:
            vary = self.headers.get("vary")
            self.headers["content-encoding"] = "gzip"
            self.headers["vary"] = f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"

    async def _send(self, send: Send) -> None:
        await send(self.start())
        if self.pieces is None:
            await send({"type": "http.response.body", "body": self.body})
            return
        async for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _limited(warnings: list[str]) -> list[str]:
    """Return the warnings that fit into headers, cut at upstream's lengths."""
    if sum(map(len, warnings)) <= _WARNINGS_LENGTH_MAX:
        return warnings
    kept, length = [], 0
    for text in warnings:
        cut = text[:_WARNING_LENGTH_MAX]
        length += len(cut)
        if length > _WARNINGS_LENGTH_MAX:
            break
        kept.append(cut)
    return kept


def _warning(text: str) -> bytes:
    """Return a Warning header (RFC 7234) with code 299, as Kubernetes does."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode()
