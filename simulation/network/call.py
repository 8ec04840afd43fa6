"""One call between two processes: its ends, and the messages under way."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, Protocol

import grpc
import grpc.aio

from nominee.simulation.event_loop.loop import SimulatedLoop
from nominee.simulation.network.delays import Delays
from nominee.simulation.network.deliveries import Deliveries
from nominee.simulation.owner import Owner
from nominee.simulation.runtime import current_owner

MESSAGES_MAX: Final = 256
"""Messages that wait for a reader; then the writer waits, as with HTTP/2's flow control."""
_FIRST_PORT: Final = 20_000
Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class Status:
    """The end of a call."""

    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    trailing: Metadata = field(default=())

    def error(self) -> grpc.aio.AioRpcError:
        """Return the exception that a client gets."""
        return grpc.aio.AioRpcError(
            self.code, grpc.aio.Metadata(), grpc.aio.Metadata(*self.trailing), details=self.details
        )


RESET = Status(grpc.StatusCode.UNAVAILABLE, "recvmsg:Connection reset by peer")
REFUSED = Status(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; Connection refused")
EXPIRED = Status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
CANCELLED = Status(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
Item = bytes | Status


class Server(Protocol):
    """A server, as calls use it."""

    @property
    def owner(self) -> Owner | None: ...

    @property
    def name(self) -> str:
        """Return the name of its process."""
        ...

    @property
    def serves(self) -> bool:
        """Return whether it accepts calls."""
        ...

    def accept(self, call: Call) -> None:
        """Begin a call that has arrived."""
        ...

    def cancel(self, call: Call) -> None:
        """Cancel the handler of a call that its client has given up."""
        ...


class Tap(Protocol):
    """An observer of the messages of all calls."""

    def on_request(self, call: Call, data: bytes) -> None:
        """Take a request, or a message of a stream of requests, that leaves the client."""
        ...

    def on_response(self, call: Call, data: bytes, status: Status | None) -> None:
        """Take a response that leaves the server; `status` is None for a message of a stream of them."""
        ...


class Exchange(Deliveries):
    """The servers by their addresses, and the calls that are open."""

    def __init__(
        self,
        loop: SimulatedLoop,
        rng_of: Callable[[str], random.Random],
        delays: Delays | None = None,
        late_watches: float = 0.0,
    ) -> None:
        super().__init__(loop, rng_of, delays, late_watches)
        self.calls: dict[Call, None] = {}
        """The open calls, in the order of their beginning."""
        self.tap: Tap | None = None
        self._servers: dict[str, Server] = {}
        self._port = _FIRST_PORT

    def free_port(self) -> int:
        """Return a port that no server has had."""
        self._port += 1
        return self._port

    def listen(self, address: str, server: Server) -> None:
        self._servers[address] = server

    def unlisten(self, server: Server) -> None:
        self._servers = {at: each for at, each in self._servers.items() if each is not server}

    def server_at(self, target: str) -> Server | None:
        """Return the server at an address, None if no process listens there."""
        found = self._servers.get(target)
        return found if found is not None and found.serves else None


class Pipe:
    """The messages of one direction of a call; they arrive late, but in order."""

    __slots__ = ("_behind", "_call", "_items", "_last", "_reader", "_writer")

    def __init__(self, call: Call, behind: float = 0.0) -> None:
        self._call = call
        self._behind = behind
        self._items: deque[Item] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._last = 0.0

    def send(self, item: Item) -> None:
        """Send a message; it arrives after those sent before it."""
        network = self._call.network
        when = max(self._last, network.loop.time() + self._behind + network.delay(self._call.link))
        self._last = when
        network.at(when, self.arrive, item)

    def arrive(self, item: Item) -> None:
        """Hand a message to the reader."""
        self._items.append(item)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def room(self) -> None:
        """Wait until the reader has taken enough for another message."""
        while len(self._items) >= MESSAGES_MAX:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer

    async def read(self) -> Item:
        """Return the next message, or the status that ends the call; a status stays."""
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        if isinstance(self._items[0], Status):
            return self._items[0]
        item = self._items.popleft()
        writer, self._writer = self._writer, None
        if writer is not None and not writer.done():
            writer.set_result(None)
        return item


class Call:
    """A call from the running process. `start` sends it."""

    def __init__(
        self, network: Exchange, target: str, path: str, metadata: Metadata, timeout: float | None
    ) -> None:
        self.network = network
        self.target = target
        self.path = path
        self.metadata = metadata
        self.client: Owner | None = current_owner()
        self.server: Server | None = None
        self.task: asyncio.Task[None] | None = None
        self.to_server = Pipe(self)
        self.to_client = Pipe(self, network.behind(self._client_name, path))
        self.ended = False
        self.deadline = None if timeout is None else network.loop.time() + timeout
        self._timer: asyncio.TimerHandle | None = None
        self.link = self._link_to(target)
        """The name of the connection, for its delays."""

    def _link_to(self, server: str) -> str:
        return f"{self._client_name}>{server}"

    @property
    def _client_name(self) -> str:
        return self.client.name if self.client is not None else ""

    def start(self, *, wait_for_ready: bool) -> None:
        """Connect, and let the server begin the call; without a server it fails, or waits for one."""
        loop = self.network.loop
        if self.deadline is not None and self._timer is None:
            self._timer = loop.call_at(self.deadline, self._expire)
        server = self.network.server_at(self.target)
        self.network.calls[self] = None
        if server is None:
            if wait_for_ready:
                self.network.after_retry(self._again)
            else:
                self.network.after_shortest_delay(self.end, REFUSED)
            return
        self.server = server
        self.link = self._link_to(server.name)
        self.network.after_delay(self.link, server.accept, self)

    def _again(self) -> None:
        if not self.ended:
            self.start(wait_for_ready=True)

    def _expire(self) -> None:
        self.cancel(EXPIRED)

    def cancel(self, status: Status = CANCELLED) -> bool:
        """End the call here; the server is notified."""
        if self.ended:
            return False
        server = self.server
        self.end(status)
        if server is not None:
            self.network.after_shortest_delay(server.cancel, self)
        return True

    def end(self, status: Status, data: bytes = b"") -> None:
        """End the call for the client."""
        if self.ended:
            return
        self.ended = True
        self.network.calls.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self.finish(status, data)

    def finish(self, status: Status, data: bytes) -> None:
        """Hand the end to the client."""
        self.to_client.arrive(status)

    def respond(self, data: bytes, status: Status) -> None:
        """Send the response of a call with one response, or its failure."""
        if self.network.tap is not None:
            self.network.tap.on_response(self, data, status)
        self.network.after_delay(self.link, self.end, status, data)


class UnaryCall(Call):
    """A call with one response, which is awaited."""

    def __init__(
        self,
        network: Exchange,
        target: str,
        path: str,
        metadata: Metadata,
        timeout: float | None,
        decode: Callable[[bytes], object],
    ) -> None:
        super().__init__(network, target, path, metadata, timeout)
        self._decode = decode
        self._response: asyncio.Future[tuple[Status, bytes]] = asyncio.Future(loop=network.loop)

    def finish(self, status: Status, data: bytes) -> None:
        if not self._response.done():
            self._response.set_result((status, data))

    def __await__(self) -> Generator[object, None, object]:
        try:
            status, data = yield from self._response.__await__()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if status.code is not grpc.StatusCode.OK:
            raise status.error()
        return self._decode(data)


class StreamCall(Call):
    """A call with many responses; with many requests, too, if `encode` is given."""

    def __init__(
        self,
        network: Exchange,
        target: str,
        path: str,
        metadata: Metadata,
        timeout: float | None,
        decode: Callable[[bytes], object],
        encode: Callable[[object], bytes],
    ) -> None:
        super().__init__(network, target, path, metadata, timeout)
        self._decode = decode
        self._encode = encode

    async def write(self, request: object) -> None:
        """Send a request. Raises: asyncio.InvalidStateError if the call has ended."""
        if self.ended:
            raise asyncio.InvalidStateError("the call has ended")
        data = self._encode(request)
        if self.network.tap is not None:
            self.network.tap.on_request(self, data)
        self.to_server.send(data)

    async def read(self) -> object:
        """Return the next response, EOF at the end. Raises: AioRpcError."""
        item = await self.to_client.read()
        if isinstance(item, bytes):
            return self._decode(item)
        self._closed()
        if item.code is grpc.StatusCode.OK:
            return grpc.aio.EOF
        if item is CANCELLED:
            raise asyncio.CancelledError
        raise item.error()

    def _closed(self) -> None:
        """Forget a call whose end the client has read."""
        self.ended = True
        self.network.calls.pop(self, None)
