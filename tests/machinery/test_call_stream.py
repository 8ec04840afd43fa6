"""The client's end of the stream of batched calls, against a server that the test plays."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import grpc
import grpc.aio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.calls.call_batching import BYTES_MAX
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc
from tests.machinery.api_server import config_map
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

Context = grpc.aio.ServicerContext[Any, Any]
WAITS, BREAKS = "waits", "breaks"


@dataclass
class Server(api_grpc.APIServicer):
    """Returns the object of each call with its name; `waits` until `release`, `breaks` ends the stream."""

    served: bool = True
    messages: list[list[str]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    unary: list[str] = field(default_factory=list)
    streams: int = 0
    waiting: list[int] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def Get(self, request: api.GetRequest, context: Context) -> api.Object:
        self.unary.append(request.target.name)
        return found(request.target.name)

    async def Create(self, request: api.CreateRequest, context: Context) -> api.Object:
        self.unary.append(request.target.name)
        return api.Object(body=request.body)

    async def Calls(self, requests: AsyncIterator[api.CallBatch], context: Context) -> None:
        if not self.served:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        self.streams += 1
        read = 0
        async for batch in requests:
            read += 1
            names = [api.GetRequest.FromString(call.request).target.name for call in batch.calls]
            self.messages.append(names)
            self.cancelled.extend(batch.cancelled)
            if BREAKS in names:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the test breaks the stream")
            answers = [
                answer_to(call.id, name)
                for call, name in zip(batch.calls, names, strict=True)
                if name != WAITS
            ]
            self.waiting += [call.id for call, name in zip(batch.calls, names, strict=True) if name == WAITS]
            if self.release.is_set():
                answers += [answer_to(number, WAITS) for number in self.waiting]
                self.waiting.clear()
            await context.write(api.AnswerBatch(answers=answers, acknowledged=read))


def found(name: str) -> api.Object:
    return api.Object(body=envelope.encode(config_map(name)))


def answer_to(number: int, name: str) -> api.BatchedAnswer:
    """Return the answer to a call: its object, or 404 for the name `missing`."""
    if name == "missing":
        failure = errors.to_rich_status(errors.not_found(kinds.CONFIG_MAP, name))
        return api.BatchedAnswer(id=number, status=failure)
    return api.BatchedAnswer(id=number, response=found(name).SerializeToString())


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Client]:
    """Serve on a port; yield a client with batches. The whole block has a limit."""
    made = grpc.aio.server()
    api_grpc.add_APIServicer_to_server(server, made)
    port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with Client(f"127.0.0.1:{port}", batches=True) as client:
                yield client
    finally:
        await made.stop(None)


async def get(client: Client, name: str) -> core.ConfigMap:
    return await client.get(kinds.CONFIG_MAP, name, "default")


async def code_of(client: Client, name: str) -> int:
    """Return the code with which a read fails, or 200."""
    try:
        await get(client, name)
    except StatusError as error:
        return error.code
    return 200


async def many(count: int, call: Callable[[int], Any]) -> None:
    """Make calls at the same time."""
    async with anyio.create_task_group() as tasks:
        for index in range(count):
            tasks.start_soon(call, index)


async def test_calls_of_one_turn_share_a_message() -> None:
    server = Server()
    async with serving(server) as client:
        await get(client, "opens the stream")
        names = [f"c{index}" for index in range(20)]

        async def one(index: int) -> None:
            assert (await get(client, names[index])).metadata.name == names[index]

        await many(len(names), one)
        assert server.messages == [["opens the stream"], names]
        assert await code_of(client, "missing") == 404
        assert (server.streams, server.unary) == (1, [])


async def test_a_call_that_hangs_holds_up_no_other() -> None:
    server = Server()
    async with serving(server) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(get, client, WAITS)
        for name in "abcdefgh":
            await get(client, name)
        assert server.waiting
        server.release.set()
        await get(client, "releases")


async def test_a_call_past_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    async with serving(server) as client:
        await get(client, "a")
        monkeypatch.setattr(client_module, "UNARY_SECONDS_MAX", 0.05)
        assert await code_of(client, WAITS) == 504
        monkeypatch.undo()
        await get(client, "b")
        assert server.cancelled == server.waiting == [2]


async def test_a_call_whose_caller_leaves() -> None:
    server = Server()
    async with serving(server) as client:
        with anyio.move_on_after(PATIENCE_SECONDS) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(get, client, WAITS)
                await eventually(lambda: server.waiting)
                scope.cancel()
        assert scope.cancelled_caught
        await eventually(lambda: server.cancelled == [1])
        server.release.set()
        await get(client, "its answer is dropped")


async def test_a_stream_that_breaks() -> None:
    server = Server()
    codes: list[int] = []
    async with serving(server) as client:

        async def waits(_: int) -> None:
            codes.append(await code_of(client, WAITS))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(many, 3, waits)
            await eventually(lambda: len(server.waiting) == 3)
            codes.append(await code_of(client, BREAKS))
        assert codes == [503] * 4
        assert (await get(client, "a")).metadata.name == "a"
        assert server.streams == 2


async def test_a_server_without_the_stream() -> None:
    server = Server(served=False)
    async with serving(server) as client:

        async def one(index: int) -> None:
            assert (await get(client, f"c{index}")).metadata.name == f"c{index}"

        await many(5, one)
        await one(5)
        assert sorted(server.unary) == [f"c{index}" for index in range(6)]
        assert server.messages == []


async def test_a_large_call_goes_by_itself() -> None:
    server = Server()
    async with serving(server) as client:
        large = await client.create(config_map("large", text="x" * BYTES_MAX))
        assert len(large.data["text"]) == BYTES_MAX
        assert (server.unary, server.messages) == (["large"], [])


async def test_a_client_that_is_closed_during_a_call() -> None:
    server = Server()
    codes: list[int] = []
    async with serving(server) as client:

        async def waits() -> None:
            codes.append(await code_of(client, WAITS))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waits)
            await eventually(lambda: server.waiting)
            await client.close()
        codes.append(await code_of(client, "a"))
    assert codes == [503, 503]


async def test_a_retired_stream_ends_with_its_last_call() -> None:
    server = Server()
    async with serving(server) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(get, client, WAITS)
            await eventually(lambda: server.waiting)
            calls = client._connection._calls
            assert calls is not None
            stream = calls._stream
            assert stream is not None
            calls.retire()
            server.release.set()
            await get(client, "by a call under way elsewhere")
        await eventually(functools.partial(getattr, stream, "ended"))


async def test_a_call_after_retirement_has_a_stream_that_ends_with_it() -> None:
    server = Server()
    async with serving(server) as client:
        await get(client, "a")
        calls = client._connection._calls
        assert calls is not None
        calls.retire()
        for name in ("late", "later"):  # as of a call that a fault has delayed
            assert (await get(client, name)).metadata.name == name
            stream = calls._stream
            assert stream is not None
            await eventually(functools.partial(getattr, stream, "ended"))
    assert server.streams == 3


async def test_calls_of_a_stream_that_never_ran_fail_when_it_is_closed() -> None:
    async with serving(Server()) as client:
        calls = client._connection._calls
        assert calls is not None
        async with anyio.create_task_group() as tasks:
            codes: list[int] = []

            async def waits() -> None:
                codes.append(await code_of(client, "a"))

            tasks.start_soon(waits)
            await asyncio.sleep(0)  # the call is made, and the stream's task has not run
            assert calls._stream is not None
            await client.close()
    assert codes == [503]


async def test_an_acknowledgement_that_cannot_be_ends_the_stream() -> None:
    class Wrong(Server):
        async def Calls(self, requests: AsyncIterator[api.CallBatch], context: Context) -> None:
            await context.write(api.AnswerBatch(acknowledged=9))
            await asyncio.sleep(PATIENCE_SECONDS)

    async with serving(Wrong()) as client:
        with pytest.raises(StatusError, match="9 of") as caught:
            await get(client, "a")
        assert caught.value.code == 500
