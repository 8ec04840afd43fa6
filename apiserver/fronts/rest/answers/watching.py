"""A watch as a stream of frames: JSON lines, or length-delimited protobuf.

An event is encoded once for all clients of the same form. Events that a client does not read wait in its
watcher's bounded queue; a client that reads nothing for long is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from nominee.apiserver.chain.watch_stream import send_batches
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.answers import tables
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.media import PARTIAL, PARTIAL_LIST, PROTOBUF, TABLE, Media
from nominee.apiserver.objects.watcher import EventType, Watcher, WatchEvent
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import meta
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire import codec, presence

SEND_SECONDS_MAX = 60.0
"""The limit for a client to read sent data; after it the connection is dropped."""

Send = Callable[[bytes], Awaitable[None]]


def content_type(media: Media) -> str:
    return f"{PROTOBUF};stream=watch" if media.form == PROTOBUF else media.form


class Frames:
    """Encodes frames of one media type; only the first frame of Tables has columns."""

    def __init__(self, media: Media, include_object: str, clock: Clock) -> None:
        self._media = media
        self._include_object = include_object
        self._columns_sent = False
        self._clock = clock

    def of(self, event: WatchEvent) -> bytes:
        """Return the frame of an event."""
        media = self._media
        if media.shown_as == TABLE:
            now, columns = self._clock.now(), not self._columns_sent
            table = tables.of_event(event.object, media, self._include_object, now, columns=columns)
            self._columns_sent = True
            return _line(event.type.name, table)
        if media.shown_as in (PARTIAL, PARTIAL_LIST):
            body = answers.of_object(Media(media.form, PARTIAL, media.version), event.object)
            return self._frame(event.type.name, body)
        key = "protobuf" if media.form == PROTOBUF else "json"
        frame = event.frames.get(key)
        if frame is None:
            body = answers.of_object(media, event.object)
            frame = event.frames[key] = self._frame(event.type.name, body)
        return frame

    def of_error(self, error: StatusError) -> bytes:
        """Return the frame that ends a watch early."""
        status = error.to_message()
        if self._media.form == PROTOBUF:
            return self._frame("ERROR", text.wrap_message("v1", "Status", status))
        return _line("ERROR", {"kind": "Status", "apiVersion": "v1", **codec.to_json(status)})

    def _frame(self, name: str, body: bytes) -> bytes:
        if self._media.form != PROTOBUF:
            return b'{"type":"%b","object":%b}\n' % (name.encode(), body.rstrip(b"\n"))
        event = meta.WatchEvent(type=name)
        event.object.raw = body
        presence.fill(event)
        raw = event.SerializeToString()
        return len(raw).to_bytes(4, "big") + raw


def _line(name: str, body: dict[str, Any]) -> bytes:
    return text.dump_bytes({"type": name, "object": body})


async def send(watcher: Watcher, frames: Frames, write: Send, clock: Clock, resource: str) -> None:
    """Send events until the watch ends. Raises: TimeoutError for a client that does not read."""
    with anyio.CancelScope() as scope:
        guard = _Guard(scope, clock)

        async def send_batch(batch: list[WatchEvent]) -> None:
            guard.begin()
            await write(b"".join(map(frames.of, batch)))
            guard.end()

        try:
            await send_batches(watcher, resource, send_batch)
        except StatusError as error:
            # When the server stops, its streams just end: clients continue from their last revision.
            if error.code != 503:
                guard.begin()
                await write(frames.of_error(error))
        finally:
            guard.close()
    if scope.cancelled_caught:
        raise TimeoutError


class _Guard:
    """Ends a stream that is stuck in a write.

    It checks at intervals, since a time limit for each write costs a third of the write itself.
    """

    __slots__ = ("_clock", "_handle", "_scope", "_since")

    def __init__(self, scope: anyio.CancelScope, clock: Clock) -> None:
        self._scope = scope
        self._clock = clock
        # The start of the write in progress, or 0.
        self._since = 0.0
        self._handle = self._later()

    def begin(self) -> None:
        self._since = self._clock.monotonic()

    def end(self) -> None:
        self._since = 0.0

    def close(self) -> None:
        self._handle.cancel()

    def _later(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(SEND_SECONDS_MAX / 4, self._look)

    def _look(self) -> None:
        if self._since and self._clock.monotonic() - self._since >= SEND_SECONDS_MAX:
            self._scope.cancel()
        else:
            self._handle = self._later()


__all__ = ["EventType", "Frames", "content_type", "send"]
