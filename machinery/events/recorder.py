"""Record events about objects.

Recording never waits: events go to a bounded queue that `run` empties at a limited rate, and are dropped and
counted when it is full. There are two recorders, as upstream: `SeriesRecorder` writes events.k8s.io/v1 with
series (kube-scheduler), `CorrelatingRecorder` core/v1 with counts (all other components).

Source: client-go 1.36, tools/events and tools/record; the rate is that of kube-scheduler's client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack
from zlib import crc32

import anyio
from google.protobuf.message import Message

from nominee.machinery.api.errors import StatusError, is_already_exists, is_not_found, is_retryable
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.reference import reference
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.queues.token_bucket import TokenBucket

QUEUE_MAX = 1000
TRIES_MAX = 12
RETRY_SECONDS = 2.0
PER_SECOND, BURST = 50.0, 100


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call of `event`; made into a message only when it is sent."""

    regarding: core.ObjectReference
    related: core.ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    micros: int
    """When it was recorded, in microseconds since the epoch; no two events have the same."""
    instance: str
    nanos: int = 0
    """Below a microsecond, by recorder: two of them record events of one object at the same time."""

    @property
    def name(self) -> str:
        """The name of the Event object: the object's and the time in nanoseconds, in hexadecimal digits."""
        return f"{self.regarding.name}.{self.micros * 1000 + self.nanos:x}"

    @property
    def namespace(self) -> str:
        """The namespace of the Event object: the object's."""
        return self.regarding.namespace or "default"


class RecorderOptions(TypedDict, total=False):
    """The options of any recorder; `per_second` and `burst` limit its requests.

    `queue` is a name for each of several recorders of one component.
    """

    queue: str
    clock: Clock
    per_second: float
    burst: int


class BufferedRecorder(ABC):
    """Records events of one component ("default-scheduler").

    `event` is cheap and never waits; `run` must run beside it to send them. `dropped` counts events that the
    full queue did not take, `failed` those that the API server did not.
    """

    def __init__(
        self, client: Client, component: str, *, instance: str = "", **options: Unpack[RecorderOptions]
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._nanos = crc32((component + options.get("queue", "")).encode()) % 1000
        self._clock = options.get("clock") or SystemClock()
        rate, burst = options.get("per_second", PER_SECOND), options.get("burst", BURST)
        self._bucket = TokenBucket(rate, burst, self._clock.monotonic())
        self._queue: deque[Recorded] = deque()
        self._wake = anyio.Event()
        self._last_micros = 0
        self.dropped = 0
        self.failed = 0

    def event(
        self,
        regarding: Message,
        type_: str,
        reason: str,
        *,
        action: str,
        note: str,
        related: Message | None = None,
        instance: str = "",
    ) -> None:
        """Record an event about an object (or an ObjectReference). `type_` is Normal or Warning.

        `action` and `related` are fields of events.k8s.io only. `instance`: the source where one recorder
        serves several (the kubelets of a process); empty is the recorder's own.
        """
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        self._last_micros = max(self._last_micros + 1, int(self._clock.now() * 1_000_000))
        self._queue.append(
            Recorded(
                _refer(regarding),
                _refer(related) if related is not None else None,
                type_,
                reason,
                action,
                note,
                self._last_micros,
                instance or self._instance,
                self._nanos,
            )
        )
        self._wake.set()

    async def run(self) -> None:
        """Send events until cancelled; a slow API server never holds up `event`."""
        token = False
        while True:
            while self._queue:
                if not token:
                    await self._clock.sleep(self._bucket.take(self._clock.monotonic()))
                token = not (self._queue and await self._send(self._queue.popleft()))
            self._wake = anyio.Event()
            await self._wake.wait()

    async def flush(self) -> None:
        """Send the queued events at once, for a clean end."""
        while self._queue:
            await self._send(self._queue.popleft())

    @abstractmethod
    async def _send(self, recorded: Recorded) -> bool:
        """Send an event, or only count it; return whether there was a request."""

    async def _create(self, event: Message) -> bool:
        """Create the Event object; return whether the API server has it now."""
        return await self._try(lambda: self._client.create(event))

    async def _patch(self, kind: AnyKind, event: Message, patch: dict[str, object]) -> bool:
        """Patch the Event object, or create it again when it has expired; return whether that succeeded."""

        async def send() -> None:
            namespace, name = key_of(event)
            try:
                await self._client.patch(kind, name, namespace, patch, patch_type=PatchType.STRATEGIC)
            except StatusError as error:
                if not is_not_found(error):
                    raise
                await self._client.create(event)

        return await self._try(send)

    async def _try(self, call: Callable[[], Awaitable[object]]) -> bool:
        """Return whether the API server accepted it; wait and try again while it cannot be reached."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                await call()
            except StatusError as error:
                if is_already_exists(error):
                    return True  # an earlier attempt succeeded, and its response was lost
                if attempt == TRIES_MAX or not is_retryable(error):
                    self.failed += 1
                    return False
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return True
        return False


def _refer(obj: Message) -> core.ObjectReference:
    return obj if isinstance(obj, core.ObjectReference) else reference(obj)
