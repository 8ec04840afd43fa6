"""Read every write from etcd: a watch over all keys from its oldest revision on.

The object as it was before a write is not asked of etcd: `Fold` has it. What etcd has compacted is a gap:
`EtcdObserver.coverage` reports it, and the state of all keys follows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
import grpc.aio
from aetcd import rpc

from nominee.lab.history.etcd_watch import (
    RANGE_REVISIONS_MAX,
    RANGE_REVISIONS_MIN,
    Broken,
    Compacted,
    HistoryUnavailable,
    read_range,
    watch,
)
from nominee.lab.history.fold import Fold
from nominee.lab.history.revision import Revision
from nominee.machinery.client.calls.unary_call import is_task_cancelled

_ALL = b"\x00"
_EMPTY = 1
"""The revision of an etcd without any write."""
_PAGE_KEYS = 1000
_CALL_SECONDS_MAX = 15.0
_BATCH_SECONDS_MAX = 30.0
_BUSY_ANSWERS = 50
"""From so many answers in `gather_seconds` on they are gathered; at a fifth of it no longer."""
_QUIET_SHARE = 5


@dataclass(slots=True)
class Coverage:
    """Which revisions a history has: all after `begin`, up to `end`, except for those in `gaps`.

    The history has the state of all keys at `begin` (0: before the first write), and behind each gap. A gap
    is (its first revision, its last one).
    """

    begin: int = 0
    end: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Return whether it has every write since the cluster was created."""
        return not self.begin and not self.gaps


class EtcdObserver:
    """Yields the writes of an etcd in batches, in revision order.

    `now` gives the time of writes that are observed while they happen; None is for reading afterwards.
    A `fold` with revisions continues after its newest one. With `gather_seconds`, what a busy etcd writes in
    such a time is read at once: an answer for each write costs more than all that is made of it. While it
    stays busy the time doubles, up to `gather_seconds_max`.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        fold: Fold | None = None,
        coverage: Coverage | None = None,
        now: Callable[[], float] | None = None,
        gather_seconds: float = 0.0,
        gather_seconds_max: float = 0.0,
    ) -> None:
        self.coverage = coverage or Coverage()
        self.fold = fold or Fold()
        self._channel = channel
        self._now = now
        self._gather_seconds = gather_seconds
        self._gather_seconds_max = max(gather_seconds, gather_seconds_max)
        self._pause = 0.0

    @property
    def is_busy(self) -> bool:
        """Return whether etcd has had many writes for some time, and they are gathered."""
        return self._pause > self._gather_seconds

    async def read(self) -> AsyncGenerator[Sequence[Revision], None]:
        """Yield the present keys of etcd, and end.

        Raises: HistoryUnavailable.
        """
        end = await self._current_revision()
        async with aclosing(self.follow()) as batches:
            while max(self.fold.revision, _EMPTY) < end:
                yield await _next(batches)

    async def follow(self) -> AsyncGenerator[Sequence[Revision], None]:
        """Yield the present keys of etcd and every later write; call it again after HistoryUnavailable.

        Raises: HistoryUnavailable.
        """
        while True:
            try:
                end = await self._current_revision()
                while end - self.fold.revision >= RANGE_REVISIONS_MIN:
                    for events in await self._until(end):
                        yield self._changes(events)
                async with aclosing(self._watched()) as answers:
                    async for events in answers:
                        yield self._changes(events)
                async with aclosing(self._gathered()) as answers:
                    async for events in answers:
                        yield self._changes(events)
            except Broken as broken:
                if isinstance(broken, Compacted):
                    self._note_compaction(self.fold.revision + 1, broken.revision)
                yield await self._state(broken.revision)

    async def _watched(self) -> AsyncGenerator[Sequence[rpc.Event], None]:
        """Yield the events as they come; with `gather_seconds` until there are too many for that."""
        count_max = _BUSY_ANSWERS if self._gather_seconds else math.inf
        began, count = anyio.current_time(), 0
        async with aclosing(watch(self._channel, self.fold.revision + 1)) as answers:
            async for events in answers:
                self._check_contiguous(events)
                yield events
                count += 1
                if anyio.current_time() - began > self._gather_seconds:
                    began, count = anyio.current_time(), 0
                elif count >= count_max:
                    return

    async def _gathered(self) -> AsyncGenerator[Sequence[rpc.Event], None]:
        """Yield the events of each pause together, until there are few."""
        self._pause = self._gather_seconds
        try:
            while self._pause:
                await anyio.sleep(self._pause)
                before = self.fold.revision
                end = await self._current_revision()
                if end > before:
                    for events in await self._until(end):
                        yield events
                count = self.fold.revision - before
                self._pause = next_pause(self._pause, count, self._gather_seconds, self._gather_seconds_max)
        finally:
            self._pause = 0.0

    async def _until(self, end: int) -> list[Sequence[rpc.Event]]:
        """Return the next events, up to a revision that etcd has, in contiguous parts."""
        last = min(end, self.fold.revision + RANGE_REVISIONS_MAX)
        parts = await read_range(self._channel, self.fold.revision + 1, last)
        self._check_contiguous(parts[0])
        return parts

    def _changes(self, events: Sequence[rpc.Event]) -> list[Revision]:
        now = None if self._now is None else self._now()
        changes = [
            self.fold.change(
                event.kv.key.decode("utf-8", "replace"),
                None if event.type == rpc.Event.DELETE else event.kv.value,
                event.kv.mod_revision,
                now,
            )
            for event in events
        ]
        self.coverage.end = self.fold.revision
        return changes

    def _check_contiguous(self, events: Sequence[rpc.Event]) -> None:
        """Check that etcd sends the revision that comes next.

        A watch may start at the revision to which etcd was compacted, but a deletion at that revision is
        compacted, too, and not sent (measured with etcd 3.4.23).

        Raises: Compacted.
        """
        first = events[0].kv.mod_revision
        if first > self.fold.revision + 1 > _EMPTY + 1:
            raise Compacted(first - 1)

    def _note_compaction(self, start: int, revision: int) -> None:
        """Note that the writes from `start` on, up to `revision`, are not in etcd any more."""
        if start == 1:
            self.coverage.begin = revision
        else:
            self.coverage.gaps.append((start, revision))

    async def _state(self, revision: int) -> list[Revision]:
        """Return the state of all keys at a revision, where it differs from the newest one known."""
        items: dict[str, tuple[bytes, int]] = {}
        key = _ALL
        while True:
            answer = await self._range(
                rpc.RangeRequest(key=key, range_end=_ALL, revision=revision, limit=_PAGE_KEYS)
            )
            for pair in answer.kvs:
                items[pair.key.decode("utf-8", "replace")] = pair.value, pair.mod_revision
            if not answer.more:
                break
            key = answer.kvs[-1].key + b"\x00"
        now = None if self._now is None else self._now()
        states = list(self.fold.state_of_all(items, revision, now))
        self.coverage.end = self.fold.revision
        return states

    async def _current_revision(self) -> int:
        answer = await self._range(rpc.RangeRequest(key=_ALL, count_only=True))
        revision: int = answer.header.revision
        return revision

    async def _range(self, request: rpc.RangeRequest) -> rpc.RangeResponse:
        try:
            return await rpc.KVStub(self._channel).Range(
                request, timeout=_CALL_SECONDS_MAX, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise HistoryUnavailable(f"etcd: {error.details() or error.code().name}") from None
        except asyncio.CancelledError:
            if await is_task_cancelled():
                raise
            raise HistoryUnavailable("etcd: the call was cancelled") from None


def next_pause(pause: float, count: int, least: float, most: float) -> float:
    """Return for how long to gather after a pause with `count` writes; 0.0 if there are too few for that."""
    share = count / pause * least
    if share < _BUSY_ANSWERS / _QUIET_SHARE:
        return 0.0
    return min(2 * pause, most) if share >= _BUSY_ANSWERS else least


async def _next(batches: AsyncGenerator[Sequence[Revision], None]) -> Sequence[Revision]:
    """Return the next batch, which etcd has already."""
    with anyio.move_on_after(_BATCH_SECONDS_MAX):
        return await anext(batches)
    raise HistoryUnavailable(f"etcd sent no write for {_BATCH_SECONDS_MAX:.0f} s, although it has more")
