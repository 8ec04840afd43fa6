"""Recording events: what a component tells people about an object.

Events are events.k8s.io/v1. Recording never waits: events go to a bounded queue that `run` empties at a
limited rate, and are dropped and counted when it is full. What is told repeatedly becomes a series
(`event_series`). Source: client-go 1.36, tools/events; the rate is that of kube-scheduler's client.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

from machinery import kinds
from machinery.client import Client
from machinery.clock import Clock, SystemClock, rfc3339_micro, to_micro_time
from machinery.errors import StatusError, is_already_exists, is_not_found, is_retryable
from machinery.event_series import SERIES_SECONDS, EventSeriesCache
from machinery.patch_type import PatchType
from machinery.pb import core, events
from machinery.token_bucket import TokenBucket

QUEUE_MAX = 1000
REFRESH_SECONDS = 30 * 60.0
TRIES_MAX = 12
RETRY_SECONDS = 2.0
NOTE_BYTES_MAX = 1024
PER_SECOND, BURST = 50.0, 100


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


@dataclass(frozen=True, slots=True)
class _Told:
    """One call of `event`; made into a message only when it is sent."""

    regarding: core.ObjectReference
    related: core.ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    micros: int
    instance: str


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
        per_second: float = PER_SECOND,
        burst: int = BURST,
        on_error: Callable[[StatusError], None] | None = None,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance or f"{controller}-{socket.gethostname()}"
        self._clock = clock or SystemClock()
        self._bucket = TokenBucket(per_second, burst, self._clock.monotonic())
        self._on_error = on_error or (lambda _: None)
        self._queue: deque[_Told] = deque()
        self._wake = anyio.Event()
        self._series = EventSeriesCache()
        self._last_micros = 0
        self.dropped = 0
        self.failed = 0

    def event(
        self,
        regarding: Any,
        type_: str,
        reason: str,
        *,
        action: str,
        note: str,
        related: Any = None,
        instance: str = "",
    ) -> None:
        """Tell something about an object (or an ObjectReference). `type_` is Normal or Warning.

        An empty action is the reason, as for upstream's older recorders. `instance`: who tells it, where one
        recorder speaks for several (the kubelets of a process); empty is the recorder's own.
        """
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        # Two events about an object differ in their names by the time.
        self._last_micros = max(self._last_micros + 1, int(self._clock.now() * 1_000_000))
        self._queue.append(
            _Told(
                _refer(regarding),
                _refer(related) if related is not None else None,
                type_,
                reason,
                action or reason,
                _cut(note),
                self._last_micros,
                instance or self._instance,
            )
        )
        self._wake.set()

    async def run(self) -> None:
        """Sends events until cancelled; an event may take long to be sent, but never holds up `event`."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._send_queued)
            group.start_soon(self._send_counts)

    async def flush(self) -> None:
        """Sends what is queued now, at once; for a clean end."""
        while self._queue:
            await self._send(self._queue.popleft())

    async def _send_queued(self) -> None:
        while True:
            while self._queue:
                await self._clock.sleep(self._bucket.take(self._clock.monotonic()))
                if self._queue:
                    await self._send(self._queue.popleft())
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _send_counts(self) -> None:
        refresh_at = self._clock.monotonic() + REFRESH_SECONDS
        while True:
            await self._clock.sleep(SERIES_SECONDS)
            grown = self._series.finish(self._clock.now())
            if self._clock.monotonic() >= refresh_at:
                grown += self._series.refresh()
                refresh_at = self._clock.monotonic() + REFRESH_SECONDS
            for event in grown:
                await self._put(event)

    async def _send(self, told: _Told) -> None:
        event = self._series.record(self._message(told))
        if event is not None and not await self._put(event):
            self._series.forget(event)

    def _message(self, told: _Told) -> events.Event:
        event = events.Event(
            reportingController=self._controller,
            reportingInstance=told.instance,
            type=told.type,
            reason=told.reason,
            action=told.action,
            note=told.note,
            regarding=told.regarding,
            related=told.related,
        )
        event.metadata.name = f"{told.regarding.name}.{told.micros * 1000:x}"
        event.metadata.namespace = told.regarding.namespace or "default"
        event.eventTime.CopyFrom(to_micro_time(told.micros / 1_000_000))
        return event

    async def _put(self, event: events.Event) -> bool:
        """Send an event or the state of its series; whether it is known to the API server now."""
        if not event.HasField("series"):
            return await self._try(lambda: self._client.create(event))
        series = {
            "count": event.series.count,
            "lastObservedTime": rfc3339_micro(event.series.lastObservedTime),
        }
        name, namespace = event.metadata.name, event.metadata.namespace

        async def send() -> None:
            try:
                await self._client.patch(
                    kinds.EVENTS_EVENT,
                    name,
                    namespace,
                    {"series": series},
                    patch_type=PatchType.STRATEGIC,
                )
            except StatusError as error:
                if not is_not_found(error):
                    raise
                # It is older than events are kept.
                await self._client.create(event)

        return await self._try(send)

    async def _try(self, call: Callable[[], Awaitable[object]]) -> bool:
        """Whether the API server took it; waits and tries again while it cannot be reached."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                await call()
            except StatusError as error:
                if is_already_exists(error):
                    return True  # an earlier try was done, its answer lost
                if attempt == TRIES_MAX or not is_retryable(error):
                    self.failed += 1
                    self._on_error(error)
                    return False
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return True
        return False


def _refer(obj: Any) -> core.ObjectReference:
    return obj if isinstance(obj, core.ObjectReference) else reference(obj)


def _cut(note: str) -> str:
    data = note.encode()
    if len(data) <= NOTE_BYTES_MAX:
        return note
    return data[: NOTE_BYTES_MAX - 3].decode(errors="ignore") + "..."
