"""Watches of all keys of etcd, and a faster reading of the distant past."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Final, TypeVar

import grpc.aio
from aetcd import rpc

from nominee.machinery.client.calls.unary_call import is_task_cancelled

RANGE_REVISIONS_MIN: Final = 3000
"""From so many revisions on `read_range` is faster than `watch`."""
RANGE_REVISIONS_MAX: Final = 20_000
_PART_REVISIONS: Final = 1000
"""Etcd sends a watch that is behind 1000 revisions, and then nothing for 100 ms."""
_ALL = b"\x00"
_FIRST_ID: Final = 1
# A member that has lost its leader ends the stream instead of going silent.
_METADATA = (("hasleader", "true"),)
T = TypeVar("T")


class HistoryUnavailable(Exception):
    """Etcd does not answer, or ended the watch."""


class Broken(Exception):
    """The watch cannot continue; the state at `revision` is the next that etcd has."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"etcd continues at revision {revision}")
        self.revision = revision


class Compacted(Broken):
    """The watch's first revision is compacted."""


class WentBack(Broken):
    """Etcd came back with older data: its next writes repeat revisions."""


async def watch(channel: grpc.aio.Channel, start: int) -> AsyncGenerator[Sequence[rpc.Event], None]:
    """Yield the events from a revision on; it never ends by itself.

    Raises: Broken, HistoryUnavailable.
    """
    call = rpc.WatchStub(channel).Watch(metadata=_METADATA, wait_for_ready=True)
    try:
        await _done(call.write(_create(start)))
        while True:
            answer = _checked(await _done(call.read()), start)
            if answer.events:
                yield answer.events
    finally:
        call.cancel()


async def read_range(channel: grpc.aio.Channel, start: int, end: int) -> list[Sequence[rpc.Event]]:
    """Return the events of the revisions from `start` to `end`, which etcd has already.

    One watch for each 1000 revisions: etcd answers all of them in one pass over its data. A single watch
    would cost it a pass over everything that is left for each 1000 revisions.

    Raises: Broken, HistoryUnavailable.
    """
    starts = range(start, end + 1, _PART_REVISIONS)
    parts: dict[int, list[rpc.Event]] = {}
    missing = {_FIRST_ID + index for index in range(len(starts))}
    call = rpc.WatchStub(channel).Watch(metadata=_METADATA, wait_for_ready=True)
    try:
        for index, first in enumerate(starts):
            await _done(call.write(_create(first, _FIRST_ID + index)))
        while missing:
            answer = _checked(await _done(call.read()), start)
            if not answer.events or answer.watch_id not in missing:
                continue
            last = min(starts[answer.watch_id - _FIRST_ID] + _PART_REVISIONS - 1, end)
            part = parts.setdefault(answer.watch_id, [])
            part.extend(event for event in answer.events if event.kv.mod_revision <= last)
            if answer.events[-1].kv.mod_revision >= last:
                missing.remove(answer.watch_id)
                cancel = rpc.WatchCancelRequest(watch_id=answer.watch_id)
                await _done(call.write(rpc.WatchRequest(cancel_request=cancel)))
    finally:
        call.cancel()
    return [parts[watch_id] for watch_id in sorted(parts)]


def _create(start: int, watch_id: int = 0) -> rpc.WatchRequest:
    request = rpc.WatchCreateRequest(key=_ALL, range_end=_ALL, start_revision=start, watch_id=watch_id)
    return rpc.WatchRequest(create_request=request)


def _checked(answer: rpc.WatchResponse | object, start: int) -> rpc.WatchResponse:
    """Return an answer that is no error; the answer to our own cancellation is no error."""
    if not isinstance(answer, rpc.WatchResponse):
        raise HistoryUnavailable("etcd ended the watch")
    if answer.canceled and answer.compact_revision:
        raise Compacted(answer.compact_revision)
    if answer.canceled and answer.cancel_reason:
        raise HistoryUnavailable(f"etcd cancelled the watch: {answer.cancel_reason}")
    if answer.created and answer.header.revision + 1 < start:
        raise WentBack(answer.header.revision)
    return answer


async def _done(operation: Awaitable[T]) -> T:
    """Await a call's read or write, and raise HistoryUnavailable for errors of grpc."""
    try:
        return await operation
    except grpc.aio.AioRpcError as error:
        raise HistoryUnavailable(f"etcd: {error.details() or error.code().name}") from None
    except asyncio.InvalidStateError as error:
        # grpc raises it for a write on a call that has failed already.
        raise HistoryUnavailable(f"etcd: {error}") from None
    except asyncio.CancelledError:
        if await is_task_cancelled():
            raise
        raise HistoryUnavailable("etcd's watch was cancelled") from None
