"""One client's watch: a bounded queue of events, filled by the watch cache and emptied by a front."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import IntEnum
from types import TracebackType
from typing import Self

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api.errors import StatusError


class EventType(IntEnum):
    """The types of events, numbered as in api.proto's WatchEvent.Type."""

    ADDED = 1
    MODIFIED = 2
    DELETED = 3
    BOOKMARK = 4
    ERROR = 5


class WatchEvent:
    """An event as clients see it; shared by all watchers that get it.

    `object` is the new state; for DELETED the last state at the deletion's revision; for BOOKMARK an empty
    object of the kind with a resourceVersion only. `frame` (gRPC) and `frames` (REST, by media type) hold the
    serialized event, so that a front serializes it once for all watchers.
    """

    __slots__ = ("_frames", "frame", "object", "type")

    def __init__(self, type: EventType, object: CachedObject) -> None:
        self.type = type
        self.object = object
        self.frame: bytes = b""
        self._frames: dict[str, bytes] | None = None

    @property
    def frames(self) -> dict[str, bytes]:
        frames = self._frames
        if frames is None:
            frames = self._frames = {}
        return frames

    @property
    def revision(self) -> int:
        return self.object.revision

    def __repr__(self) -> str:
        return f"<{self.type.name} {self.object!r}>"


class Watcher(AsyncIterator[list[WatchEvent]]):
    """An asynchronous iterator of batches of events, in revision order. A batch is never empty.

    Ends when it is closed or its time is up. Raises StatusError when it must end early (410 Expired when its
    revision is compacted, 429 when it was too slow). Leave it with `close()` or `async with`.
    """

    __slots__ = ("_batch_size", "_capacity", "_error", "_on_close", "_queue", "_waiting", "closed", "rest")

    def __init__(
        self,
        *,
        capacity: int,
        batch_size: int,
        on_close: Callable[[Watcher], None] | None = None,
        rest: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._queue: deque[WatchEvent] = deque()
        self._capacity = capacity
        self._batch_size = batch_size
        self._waiting: asyncio.Future[None] | None = None
        self._error: StatusError | None = None
        self._on_close = on_close
        # Waits, after a message, until the next one may be sent.
        self.rest = rest
        self.closed = False

    def offer(self, event: WatchEvent) -> bool:
        """Queue an event; return False when the queue is full (the watcher is too slow)."""
        if len(self._queue) >= self._capacity:
            return False
        self._queue.append(event)
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        return True

    def preload(self, events: list[WatchEvent]) -> None:
        """Queue the initial events; they may exceed the capacity, since the objects exist anyway."""
        self._queue.extend(events)
        self._capacity += len(events)

    def end(self, error: StatusError | None = None) -> None:
        """Stop after the queued events, or raise `error` after them."""
        if self.closed:
            return
        self.closed = True
        self._error = error
        if self._on_close is not None:
            self._on_close(self)
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def drop(self, error: StatusError) -> None:
        """End with `error` at once: a slow watcher loses its queued events."""
        self._queue.clear()
        self.end(error)

    def close(self) -> None:
        """End the watch and drop its queued events."""
        self._queue.clear()
        self.end()

    @property
    def queued(self) -> int:
        """The number of queued events."""
        return len(self._queue)

    async def __anext__(self) -> list[WatchEvent]:
        queue = self._queue
        while not queue:
            if self.closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if len(queue) <= self._batch_size:
            batch = list(queue)
            queue.clear()
            return batch
        return [queue.popleft() for _ in range(self._batch_size)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
