"""Time as an argument: the one module that may read the machine's clock.

Everything that waits or stamps takes a `Clock`; tests pass a `FakeClock` and move it. Seconds are floats
since the epoch (`now`) or since some fixed moment (`monotonic`).
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from nominee.machinery.api.pb import meta

_NANOS = 1_000_000_000
_MICROS = 1_000_000
OFFSET_SECONDS_MAX = 10 * 366 * 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """The current time, and waiting."""

    def now(self) -> float:
        """Wall time, seconds since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less yields to other tasks once."""
        ...


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time: `now` in seconds since the epoch, `monotonic` in seconds that never go back.

    Time stamps of API objects are compared with `now`; how long ago this process did something is a
    difference of `monotonic`, which a jump of the machine's clock does not change. Source: Go's time.Now().
    """

    now: float
    monotonic: float

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        """Return the present moment."""
        return cls(clock.now(), clock.monotonic())


class SystemClock:
    """The machine's clock; `now` is shifted by this process's offset (`set_offset`)."""

    offset_seconds = 0.0

    def now(self) -> float:
        return time.time() + self.offset_seconds  # noqa: TID251  # this is the module that may

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0.0))


def set_offset(seconds: float) -> None:
    """Shift the wall clock of this process, as a jump of the machine's does; `monotonic` is unaffected."""
    SystemClock.offset_seconds = seconds


def offset() -> float:
    """Return the offset of this process's wall clock in seconds."""
    return SystemClock.offset_seconds


class FakeClock:
    """A clock that stands still until `advance` moves it, and then wakes its sleepers in order of time.

    `now` and `monotonic` move together. `advance` is a coroutine: it runs woken tasks (and whatever they
    start) before it moves on, so a test need not sleep. `sleepers` and `wait_for_sleepers` tell when the
    code under test has come to rest.
    """

    SETTLE_ROUNDS = 20  # how often `advance` yields, so that woken tasks reach their next wait

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._started = now
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, anyio.Event]] = []
        self._arrived = anyio.Event()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now - self._started

    @property
    def sleepers(self) -> int:
        """How many tasks sleep on this clock."""
        return len(self._waiting)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved by so many seconds."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        entry = (self._now + seconds, next(self._order), anyio.Event())
        heapq.heappush(self._waiting, entry)
        self._arrived.set()
        self._arrived = anyio.Event()
        try:
            await entry[2].wait()
        finally:
            if entry in self._waiting:  # cancelled before its time
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)

    def set(self, now: float) -> None:
        """Set the time without running other tasks; sleepers that are due wake at the next await."""
        self._now = now
        while self._waiting and self._waiting[0][0] <= now:
            heapq.heappop(self._waiting)[2].set()

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`, stopping at each wake-up on the way so that sleepers see their own time."""
        end = self._now + seconds
        await self.settle()
        while self._waiting and self._waiting[0][0] <= end:
            self.set(max(self._now, self._waiting[0][0]))
            await self.settle()
        self._now = end
        await self.settle()

    async def settle(self) -> None:
        """Let other tasks run for a bounded number of rounds."""
        for _ in range(self.SETTLE_ROUNDS):
            await anyio.lowlevel.checkpoint()

    async def wait_for_sleepers(self, count: int = 1, *, limit_seconds: float = 60.0) -> None:
        """Wait until `count` tasks sleep here.

        Raises:
            TimeoutError: fewer sleep after `limit_seconds` of real time.
        """
        with anyio.fail_after(limit_seconds):
            while len(self._waiting) < count:
                await self._arrived.wait()


def _split(seconds: float, step: int) -> tuple[int, int]:
    """Whole seconds and the rest in nanoseconds, cut (not rounded) to multiples of `step` nanoseconds.

    A float near today's epoch resolves about 240 ns; rounding to microseconds first restores what the
    caller meant by 0.1.
    """
    micros = round(seconds * _MICROS)
    whole, rest = divmod(micros, _MICROS)
    nanos = rest * 1000
    return whole, nanos - nanos % step


# Commands read the clock, but no message: the import of the messages takes 80 ms.


def to_time(seconds: float) -> meta.Time:
    """`meta.Time`, cut to whole seconds as Kubernetes' JSON and storage do."""
    from nominee.machinery.api.pb import meta

    whole, _ = _split(seconds, _NANOS)
    return meta.Time(seconds=whole, nanos=0)


def to_micro_time(seconds: float) -> meta.MicroTime:
    """`meta.MicroTime`, to the microsecond."""
    from nominee.machinery.api.pb import meta

    whole, nanos = _split(seconds, 1000)
    return meta.MicroTime(seconds=whole, nanos=nanos)


def from_time(value: meta.Time | meta.MicroTime) -> float:
    """Return the seconds since the epoch. The zero time of Go (seconds unset) is 0.0."""
    return value.seconds + value.nanos / _NANOS


def rfc3339(value: meta.Time | float) -> str:
    """`2026-11-21T04:05:06Z`: how meta.Time is written."""
    seconds = _split(value, _NANOS)[0] if isinstance(value, float | int) else value.seconds
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(value: meta.MicroTime | float) -> str:
    """`2026-11-21T04:05:06.000007Z`: how meta.MicroTime is written."""
    if isinstance(value, float | int):
        value = to_micro_time(value)
    moment = _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """Return the seconds since the epoch of an RFC 3339 time, to the microsecond.

    Raises:
        ValueError: the text is not an RFC 3339 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f'parsing time "{text}": no time zone')
    return (moment - _EPOCH) / timedelta(seconds=1)
