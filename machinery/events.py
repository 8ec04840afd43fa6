"""Recording events: what a component tells people about an object.

Events are events.k8s.io/v1. The same thing told again about the same version of an object becomes one event
with a series (count, last time). Recording never waits: events go to a bounded queue that `run` empties, and
are counted as dropped when it is full. Source: client-go 1.36, tools/events.
"""

from __future__ import annotations

import socket
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio

from machinery import kinds
from machinery.client import Client
from machinery.clock import Clock, SystemClock, to_micro_time
from machinery.errors import StatusError, is_not_found, is_retryable
from machinery.patch_type import PatchType
from machinery.pb import core, events

QUEUE_MAX = 4096
CACHE_MAX = 4096
SERIES_SECONDS = 6 * 60.0
"""A series that was not continued for so long has ended; the next time starts a new event."""
TRIES_MAX = 12
RETRY_SECONDS = 2.0
NOTE_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes two events the same thing told twice."""

    type: str
    action: str
    reason: str
    regarding: tuple[str, str, str, str, str, str]
    related: tuple[str, str, str, str, str, str]


@dataclass(slots=True)
class _Seen:
    name: str
    namespace: str
    count: int
    last_seconds: float


def reference(obj: Any) -> core.ObjectReference:
    """A reference to an object as events carry it, its resourceVersion included."""
    kind = kinds.of(obj)
    return core.ObjectReference(
        kind=kind.kind,
        apiVersion=kind.api_version,
        namespace=obj.metadata.namespace,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        resourceVersion=obj.metadata.resourceVersion,
    )


def _parts(ref: core.ObjectReference | None) -> tuple[str, str, str, str, str, str]:
    if ref is None:
        return ("", "", "", "", "", "")
    return (ref.apiVersion, ref.kind, ref.namespace, ref.name, ref.uid, ref.resourceVersion)


class EventRecorder:
    """Records events as one reporting controller ("default-scheduler").

    `event` is cheap and never waits; `run` must run beside it to send them. `dropped` counts events that the
    full queue did not take, `failed` those that the API server did not.
    """

    def __init__(
        self,
        client: Client,
        controller: str,
        *,
        clock: Clock | None = None,
        instance: str = "",
        on_error: Callable[[StatusError], None] | None = None,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance or f"{controller}-{socket.gethostname()}"
        self._clock = clock or SystemClock()
        self._on_error = on_error or (lambda _: None)
        self._queue: deque[tuple[_Key, Any, Any, str, float]] = deque()
        self._wake = anyio.Event()
        self._seen: OrderedDict[_Key, _Seen] = OrderedDict()
        self.dropped = 0
        self.failed = 0

    def event(
        self, regarding: Any, type_: str, reason: str, *, action: str, note: str, related: Any = None
    ) -> None:
        """Tell something about an object (or an ObjectReference). `type_` is Normal or Warning."""
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        about = regarding if isinstance(regarding, core.ObjectReference) else reference(regarding)
        other = None
        if related is not None:
            other = related if isinstance(related, core.ObjectReference) else reference(related)
        key = _Key(type_, action, reason, _parts(about), _parts(other))
        self._queue.append((key, about, other, note[:NOTE_CHARACTERS_MAX], self._clock.now()))
        self._wake.set()

    async def run(self) -> None:
        """Sends events until cancelled."""
        while True:
            while self._queue:
                await self._send(*self._queue.popleft())
            self._wake = anyio.Event()
            await self._wake.wait()

    async def flush(self) -> None:
        """Sends what is queued now; for a clean end."""
        while self._queue:
            await self._send(*self._queue.popleft())

    async def _send(self, key: _Key, about: Any, related: Any, note: str, now: float) -> None:
        seen = self._seen.get(key)
        if seen is not None and now - seen.last_seconds < SERIES_SECONDS:
            seen.count += 1
            seen.last_seconds = now
            self._seen.move_to_end(key)
            if await self._try(lambda: self._continue_series(seen)):
                return
        event = self._make(key, about, related, note, now)
        if not await self._try(lambda: self._client.create(event)):
            return
        self._seen[key] = _Seen(event.metadata.name, event.metadata.namespace, 1, now)
        while len(self._seen) > CACHE_MAX:
            self._seen.popitem(last=False)

    def _make(self, key: _Key, about: Any, related: Any, note: str, now: float) -> events.Event:
        event = events.Event()
        nanos = round(now * 1_000_000) * 1000
        event.metadata.name = f"{about.name}.{nanos:x}"
        event.metadata.namespace = about.namespace or "default"
        event.eventTime.CopyFrom(to_micro_time(now))
        event.reportingController, event.reportingInstance = self._controller, self._instance
        event.type, event.reason, event.action, event.note = key.type, key.reason, key.action, note
        event.regarding.CopyFrom(about)
        if related is not None:
            event.related.CopyFrom(related)
        return event

    async def _continue_series(self, seen: _Seen) -> Any:
        series = events.EventSeries(count=seen.count)
        series.lastObservedTime.CopyFrom(to_micro_time(seen.last_seconds))
        from machinery.wire.codec import to_json  # not needed before the first repetition

        return await self._client.patch(
            kinds.EVENTS_EVENT,
            seen.name,
            seen.namespace,
            {"series": to_json(series)},
            patch_type=PatchType.STRATEGIC,
        )

    async def _try(self, call: Callable[[], Any]) -> bool:
        """Whether the API server took it; waits and tries again while it cannot be reached."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                await call()
            except StatusError as error:
                if is_not_found(error):
                    return False  # the event aged out, or its namespace is gone
                if attempt == TRIES_MAX or not is_retryable(error):
                    self.failed += 1
                    self._on_error(error)
                    return False
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return True
        return False
