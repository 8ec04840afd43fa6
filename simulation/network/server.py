"""A server, as components use grpc.aio's: handlers of bytes, started on an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import Context, copy_context
from typing import NamedTuple, NoReturn, TypeAlias, cast

import anyio
import grpc
import grpc.aio

from nominee.simulation.network.call import RESET, Call, Exchange, Metadata, Status, UnaryCall
from nominee.simulation.owner import Owner, OwnerState
from nominee.simulation.runtime import current_owner

_STOPPED = Status(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
_EXHAUSTED = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")
_Handler: TypeAlias = "grpc.RpcMethodHandler[object, object]"
_Method = Callable[[object, "ServicerContext"], Awaitable[object]]
"""A handler of grpc.aio: a coroutine function, which writes its responses if there are many."""


class _Details(NamedTuple):
    """The method and metadata of a call, as generic handlers and interceptors see them."""

    method: str
    invocation_metadata: Metadata


class AbortError(Exception):
    """The handler ended its call by `abort`."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.details)
        self.status = status


class ServicerContext:
    """The methods of grpc.aio.ServicerContext that handlers use."""

    def __init__(self, call: Call, handler: grpc.RpcMethodHandler[object, object]) -> None:
        self._call = call
        self._encode = handler.response_serializer
        self._decode = handler.request_deserializer

    def invocation_metadata(self) -> Metadata:
        return self._call.metadata

    def time_remaining(self) -> float | None:
        deadline = self._call.deadline
        return None if deadline is None else max(deadline - self._call.network.loop.time(), 0.0)

    def peer(self) -> str:
        return "simulated:" + (self._call.client.name if self._call.client is not None else "")

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        return {}

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()
    ) -> NoReturn:
        """End the call with a status."""
        raise AbortError(Status(code, details, tuple(trailing_metadata)))

    async def read(self) -> object:
        """Return the next request of a stream of them, EOF at its end."""
        item = await self._call.to_server.read()
        if not isinstance(item, bytes):
            return grpc.aio.EOF
        return self._decode(item) if self._decode is not None else item

    async def write(self, message: object) -> None:
        """Send a response; wait while the client is too far behind."""
        await self._call.to_client.room()
        data = cast("bytes", self._encode(message) if self._encode is not None else message)
        if self._call.network.tap is not None:
            self._call.network.tap.on_response(self._call, data, None)
        self._call.to_client.send(data)


class SimulatedServer:
    """A server of the process that made it."""

    def __init__(
        self, network: Exchange, interceptors: Sequence[grpc.aio.ServerInterceptor], calls_max: int | None
    ) -> None:
        self._network = network
        self._interceptors = tuple(interceptors)
        self._calls_max = calls_max
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._found: dict[str, _Handler | None] = {}
        self._addresses: list[str] = []
        self._context: Context = copy_context()
        self._calls: dict[Call, None] = {}
        self._stopped = False
        self._ended: anyio.Event | None = None
        self.owner: Owner | None = current_owner()

    @property
    def name(self) -> str:
        return self.owner.name if self.owner is not None else ""

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._handlers.extend(handlers)

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[object, object]]
    ) -> None:
        """Do nothing: the same handlers are added as generic ones."""

    def add_insecure_port(self, address: str) -> int:
        """Reserve an address; port 0 is replaced by a free one. Return the port."""
        host, _, port = address.rpartition(":")
        number = int(port) or self._network.free_port()
        self._addresses.append(f"{host}:{number}")
        return number

    async def start(self) -> None:
        """Accept calls from now on."""
        for address in self._addresses:
            self._network.listen(address, self)

    async def stop(self, grace: float | None) -> None:
        """Accept no more calls, and cancel those that are open after the grace period."""
        self._stopped = True
        self._network.unlisten(self)
        with anyio.move_on_after(grace or 0.0):
            while self._calls:
                self._ended = anyio.Event()
                await self._ended.wait()
        for call in list(self._calls):
            if call.task is not None:
                call.task.cancel()
            self._network.after_delay(call.link, call.end, _STOPPED)

    @property
    def serves(self) -> bool:
        return not self._stopped and (self.owner is None or self.owner.state is not OwnerState.DEAD)

    # For calls.

    def accept(self, call: Call) -> None:
        """Begin a call that has arrived."""
        if not self.serves:
            self._network.after_delay(call.link, call.end, RESET)
        elif self._calls_max is not None and len(self._calls) >= self._calls_max:
            self._network.after_delay(call.link, call.end, _EXHAUSTED)
        elif not call.ended:
            self._calls[call] = None
            call.task = self._network.loop.create_task(self._serve(call), context=self._context.copy())

    def cancel(self, call: Call) -> None:
        """Cancel the handler of a call that its client has given up."""
        if call.task is not None and self.serves:
            # In the server's own context, so that a frozen server notices it later.
            self._network.loop.call_soon(call.task.cancel, context=self._context)

    async def _serve(self, call: Call) -> None:
        try:
            status, data = await self._handled(call)
        except AbortError as error:
            status, data = error.status, b""
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # as grpc reports what a handler raises
            status, data = Status(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}"), b""
            self._network.loop.problems.append(f"{call.path}: {error!r}")
        finally:
            self._calls.pop(call, None)
            if self._ended is not None:
                self._ended.set()
        if isinstance(call, UnaryCall):
            call.respond(data, status)
        else:
            call.to_client.send(status)

    async def _handled(self, call: Call) -> tuple[Status, bytes]:
        """Run the handler, and return the status and the response of a call with one."""
        handler = await self._handler_of(call)
        if handler is None:
            return Status(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"), b""
        context = ServicerContext(call, handler)
        if handler.request_streaming:
            method = cast("_Method", handler.stream_stream)
            outcome = method(_requests(call, handler), context)
        else:
            data = await call.to_server.read()
            assert isinstance(data, bytes)
            request = handler.request_deserializer(data) if handler.request_deserializer else data
            method = cast(
                "_Method", handler.unary_stream if handler.response_streaming else handler.unary_unary
            )
            outcome = method(request, context)
        response = await outcome
        if handler.response_streaming:
            return Status(), b""
        encode = handler.response_serializer
        return Status(), encode(response) if encode is not None else cast("bytes", response)

    async def _handler_of(self, call: Call) -> _Handler | None:
        """Return the handler of a call's method; generic handlers find it by its path only."""
        details = cast("grpc.HandlerCallDetails", _Details(call.path, call.metadata))
        if self._interceptors:
            (interceptor,) = self._interceptors
            return await interceptor.intercept_service(self._find, details)
        try:
            return self._found[call.path]
        except KeyError:
            found = self._found[call.path] = await self._find(details)
            return found

    async def _find(self, details: grpc.HandlerCallDetails) -> _Handler | None:
        for each in self._handlers:
            found = each.service(details)
            if found is not None:
                return cast("_Handler", found)
        return None


async def _requests(call: Call, handler: grpc.RpcMethodHandler[object, object]) -> AsyncIterator[object]:
    while True:
        item = await call.to_server.read()
        if not isinstance(item, bytes):
            return
        yield handler.request_deserializer(item) if handler.request_deserializer else item
