"""The client's end of the stream of batched calls: `call_batching` decides, this module reads and writes.

The first call opens the stream, and a call after its end opens another one. A stream that breaks leaves the
outcome of its calls unknown: they fail as a call of its own fails whose response is lost.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import grpc
import grpc.aio

from nominee.machinery.api import errors
from nominee.machinery.client.calls.call_batching import BYTES_MAX, ClientCalls, Outgoing, ProtocolError
from nominee.machinery.client.calls.unary_call import await_call
from nominee.machinery.runtime.deadlines import Deadlines
from nominee.machinery.runtime.loop_turn import next_turn
from nominee.pb.nominee_api.v1 import api_pb2 as api

if TYPE_CHECKING:
    Method: TypeAlias = api.BatchedCall.Method

Stream: TypeAlias = "grpc.aio.StreamStreamCall[api.CallBatch, api.AnswerBatch]"
_CLOSED = "the connection was closed"
_BROKEN = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN})
"""Ends of a stream that grpc makes up where a write fails before the reason is read."""


class NotServedError(Exception):
    """The server has no such stream, and has done nothing: the call is to be made by itself."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that has not ended; `deadline` is in the loop's time."""

    method: Method
    request: bytes
    deadline: float
    answer: asyncio.Future[bytes]


class BatchedCalls:
    """The calls of one connection that share a stream."""

    def __init__(self, connect: Callable[[], Stream]) -> None:
        self._connect = connect
        self._stream: _CallStream | None = None
        self._retired = False
        self.served = True
        """Whether the server may have such a stream."""

    def has_room(self, request: bytes) -> bool:
        """Return whether a call may go by the stream."""
        if not self.served or len(request) > BYTES_MAX:
            return False
        return self._stream is None or self._stream.calls.has_room()

    async def call(self, method: Method, request: bytes, seconds_max: float) -> bytes:
        """Return the serialized response.

        Raises:
            grpc.aio.AioRpcError: the call failed, as a call of its own does.
            StatusError: 503 where the connection was closed.
            NotServedError: the server has no such stream.
        """
        stream = self._stream
        if stream is None or stream.ended:
            stream = self._stream = _CallStream(self._connect, retired=self._retired)
        try:
            return await stream.call(method, request, seconds_max)
        except NotServedError:
            self.served = False
            raise

    def retire(self) -> None:
        """End the stream once its calls have ended."""
        self._retired = True
        if self._stream is not None:
            self._stream.retire()

    async def close(self) -> None:
        """End the stream; its calls fail."""
        if self._stream is not None:
            await self._stream.close()


class _CallStream:
    """One stream and its calls, from the first call to its end; one that is retired ends with its last call.

    Its end does not rely on its task, which never runs if it is cancelled in the turn in which it was made.
    """

    def __init__(self, connect: Callable[[], Stream], *, retired: bool) -> None:
        self.calls: ClientCalls[_Call] = ClientCalls()
        self.ended = False
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._expire)
        self._retired = retired
        self._writer_waits: asyncio.Future[None] | None = None
        self._task = self._loop.create_task(self._run())

    async def call(self, method: Method, request: bytes, seconds_max: float) -> bytes:
        loop = self._loop
        made = _Call(method, request, loop.time() + seconds_max, loop.create_future())
        number = self.calls.add(made, len(request))
        self._deadlines.add(number, made.deadline)
        self._wake_writer()
        try:
            return await made.answer
        except asyncio.CancelledError:
            self._deadlines.remove(number)
            self.calls.give_up(number)
            self._wake_writer()
            self._end_if_retired()
            raise

    def retire(self) -> None:
        self._retired = True
        self._end_if_retired()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        self._end(errors.service_unavailable(_CLOSED))

    def _end_if_retired(self) -> None:
        if self._retired and self.calls.is_idle():
            self._task.cancel()
            self._end(errors.service_unavailable(_CLOSED))

    def _end(self, error: Exception) -> None:
        """Take no more calls; those that have not ended fail."""
        self.ended = True
        self._deadlines.close()
        for made in self.calls.drop_all():
            if not made.answer.done():
                made.answer.set_exception(copy.copy(error))

    def _expire(self, number: int) -> None:
        made = self.calls.give_up(number)
        if made is not None and not made.answer.done():
            made.answer.set_exception(_rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))
        self._wake_writer()
        self._end_if_retired()

    def _wake_writer(self) -> None:
        """Let the writer run in the next turn of the loop, behind the calls that are ready in this one."""
        waits = self._writer_waits
        if waits is not None and self.calls.wants_to_send():
            self._writer_waits = None
            if not waits.done():
                waits.set_result(None)

    async def _run(self) -> None:
        error: Exception = errors.service_unavailable(_CLOSED)
        try:
            stream = self._connect()
            try:
                async with asyncio.TaskGroup() as group:
                    writer = group.create_task(self._write(stream))
                    error = await self._read(stream)
                    writer.cancel()
            finally:
                stream.cancel()
        except (grpc.aio.UsageError, grpc.aio.InternalError):
            error = errors.service_unavailable("the client is closed")
        finally:
            self._end(error)

    async def _write(self, stream: Stream) -> None:
        """Send messages, one at a time, until the stream ends."""
        calls, turns = self.calls, 0
        while True:
            outgoing = calls.take(turns)
            if outgoing is None and calls.wants_to_send():
                turns += 1
                await next_turn()
                continue
            turns = 0
            if outgoing is None:
                self._writer_waits = self._loop.create_future()
                await self._writer_waits
                continue
            try:
                await stream.write(self._message(outgoing))
            except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
                # The reader gets the reason.
                return

    def _message(self, outgoing: Outgoing[_Call]) -> api.CallBatch:
        now = self._loop.time()
        message = api.CallBatch(cancelled=outgoing.cancellations)
        add = message.calls.add
        for number, made in outgoing.calls:
            add(
                id=number,
                method=made.method,
                request=made.request,
                timeout_seconds=max(made.deadline - now, 0.0),
            )
        return message

    async def _read(self, stream: Stream) -> Exception:
        """Hand answers to their calls until the stream ends; return the reason."""
        answered = False
        while True:
            try:
                message = await await_call(stream.read())
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED and not answered:
                    return NotServedError()
                if error.code() in _BROKEN:
                    return _rpc_error(grpc.StatusCode.UNAVAILABLE, error.details() or "the stream broke")
                return error
            except errors.StatusError as error:
                return error
            if not isinstance(message, api.AnswerBatch):
                return _rpc_error(grpc.StatusCode.UNAVAILABLE, "the server ended the stream of calls")
            answered = True
            try:
                self.calls.acknowledge(message.acknowledged)
            except ProtocolError as error:
                return errors.internal(str(error))
            self._wake_writer()
            for answer in message.answers:
                self._answer(answer)
            self._end_if_retired()

    def _answer(self, answer: api.BatchedAnswer) -> None:
        number = answer.id
        self._deadlines.remove(number)
        made = self.calls.finish(number)
        if made is None or made.answer.done():
            return
        if answer.HasField("status"):
            made.answer.set_exception(errors.from_rich_status(answer.status))
        else:
            made.answer.set_result(answer.response)


def _rpc_error(code: grpc.StatusCode, text: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)
