"""The server's end of the stream of batched calls: each call is a request of its own through the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import grpc
from google.protobuf.message import DecodeError, Message

from nominee.apiserver.chain.filters import STOPPING, Dependencies
from nominee.apiserver.chain.request import Verb
from nominee.apiserver.fronts.grpc.metadata import CallMetadata
from nominee.apiserver.fronts.grpc.request import CallInfo, Context, GrpcRequest
from nominee.machinery.api import errors
from nominee.machinery.client.calls.call_batching import ProtocolError, ServerCalls
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.deadlines import Deadlines
from nominee.machinery.runtime.loop_turn import next_turn
from nominee.pb.nominee_api.v1 import api_pb2 as api

BATCHED: Mapping[int, tuple[Verb, type[Message]]] = {
    api.BatchedCall.GET: ("get", api.GetRequest),
    api.BatchedCall.CREATE: ("create", api.CreateRequest),
    api.BatchedCall.UPDATE: ("update", api.UpdateRequest),
    api.BatchedCall.PATCH: ("patch", api.PatchRequest),
    api.BatchedCall.DELETE: ("delete", api.DeleteRequest),
}
_log = logs.get()


class ServedCallStream:
    """One client's stream, while it is served."""

    def __init__(
        self,
        context: Context,
        metadata: CallMetadata,
        server: Dependencies,
        chain: Callable[[GrpcRequest], Awaitable[None]],
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._server = server
        self._chain = chain
        self._loop = asyncio.get_running_loop()
        self._calls: ServerCalls[api.BatchedAnswer] = ServerCalls()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._deadlines = Deadlines(self._cancel)
        self._writer_waits: asyncio.Future[None] | None = None
        self._reads = True
        self._draining = False
        self._problem = ""

    async def serve(self) -> None:
        """Serve calls until the client ends the stream, or after `drain` the open ones."""
        try:
            async with asyncio.TaskGroup() as group:
                reader = group.create_task(self._read(group))
                await self._write()
                reader.cancel()
        finally:
            self._deadlines.close()
        if self._problem:
            await self._context.abort(grpc.StatusCode.INVALID_ARGUMENT, self._problem)

    def drain(self) -> None:
        """Begin no more calls; the stream ends with the answers to those that have begun."""
        self._draining = True
        self._wake_writer()

    # Calls.

    async def _read(self, group: asyncio.TaskGroup) -> None:
        """Begin the calls of each message."""
        context, calls = self._context, self._calls
        try:
            while isinstance(data := await context.read(), bytes):
                message = api.CallBatch.FromString(data)
                calls.message_read()
                now = self._loop.time()
                for call in message.calls:
                    self._begin(group, call, now)
                for number in message.cancelled:
                    self._cancel(number)
                self._wake_writer()
        except (DecodeError, ProtocolError) as error:
            self._problem = f"the stream of calls cannot be understood: {error}"
        finally:
            self._reads = False
            self._wake_writer()

    def _begin(self, group: asyncio.TaskGroup, call: api.BatchedCall, now: float) -> None:
        number, deadline = call.id, now + call.timeout_seconds
        self._calls.begin(number)
        if self._draining:
            self._refuse(number, errors.service_unavailable(STOPPING))
            return
        method = BATCHED.get(call.method)
        if method is None:
            self._refuse(number, errors.bad_request(f"method {call.method} has no place in a batch"))
            return
        clock = self._loop.time
        info = CallInfo(self._metadata, lambda: max(deadline - clock(), 0.0), self._server)
        request = GrpcRequest(*method, call.request, info)
        self._deadlines.add(number, deadline)
        self._tasks[number] = group.create_task(self._handle(number, request))

    async def _handle(self, number: int, request: GrpcRequest) -> None:
        """Pass a call through the chain, and let its answer wait for the next message."""
        try:
            await self._chain(request)
            failure = request.failure
        except Exception as error:  # noqa: BLE001  # as grpc reports what a handler raises
            _log.exception("A call failed", verb=request.verb)
            failure = errors.internal(f"{type(error).__name__}: {error}")
        if self._tasks.pop(number, None) is None:
            # Given up while it ended.
            return
        self._deadlines.remove(number)
        if failure is None:
            response = request.response
            self._answer(api.BatchedAnswer(id=number, response=response), len(response))
        else:
            self._refuse(number, failure)

    def _refuse(self, number: int, failure: errors.StatusError) -> None:
        status = errors.to_rich_status(failure)
        self._answer(api.BatchedAnswer(id=number, status=status), len(status))

    def _answer(self, answer: api.BatchedAnswer, size: int) -> None:
        self._calls.answer(answer.id, answer, size)
        self._wake_writer()

    def _cancel(self, number: int) -> None:
        """Cancel the handler of a call that no one waits for: given up, or past its deadline."""
        task = self._tasks.pop(number, None)
        if task is not None:
            self._deadlines.remove(number)
            self._calls.cancel(number)
            task.cancel()
            self._wake_writer()

    # Answers.

    def _wake_writer(self) -> None:
        """Let the writer run in the next turn of the loop, behind the answers that are ready in this one."""
        waits, self._writer_waits = self._writer_waits, None
        if waits is not None and not waits.done():
            waits.set_result(None)

    async def _write(self) -> None:
        """Send answers and acknowledgements, one message at a time, until all calls have ended."""
        write, calls, turns = self._context.write, self._calls, 0
        while (self._reads and not self._draining) or not calls.is_idle():
            due = calls.take(turns)
            if due is None and calls.wants_to_send():
                turns += 1
                await next_turn()
                continue
            turns = 0
            if due is None:
                self._writer_waits = self._loop.create_future()
                await self._writer_waits
                continue
            answers, acknowledged = due
            await write(api.AnswerBatch(answers=answers, acknowledged=acknowledged).SerializeToString())
