"""Connections to API servers: a channel, its stub, and the stream of batched calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import grpc.aio
from google.protobuf.message import Message

from nominee.machinery.client import credentials
from nominee.machinery.client.calls.call_stream import BatchedCalls, NotServedError
from nominee.machinery.client.credentials import Metadata
from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS
from nominee.machinery.process.run_files import RunFile
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc

if TYPE_CHECKING:
    from nominee.machinery.client.calls.call_stream import Method

Send: TypeAlias = Callable[..., Awaitable[Message]]
"""Makes a unary call: takes the request, `timeout` and `metadata`, returns the response."""
_BATCHED: dict[str, tuple[Method, type[Message]]] = {
    "Get": (api.BatchedCall.GET, api.Object),
    "Create": (api.BatchedCall.CREATE, api.Object),
    "Update": (api.BatchedCall.UPDATE, api.Object),
    "Patch": (api.BatchedCall.PATCH, api.Object),
    "Delete": (api.BatchedCall.DELETE, api.DeleteResponse),
}
"""The methods that the stream carries, and their responses. The response to a List may be large."""


class Connection:
    """One connection; `server` is the name of the process at its other end."""

    def __init__(
        self,
        address: str,
        server: str,
        channel: grpc.aio.Channel,
        metadata: Metadata | None,
        *,
        batches: bool,
    ) -> None:
        self.address = address
        self.server = server
        self.metadata = metadata
        self._channel = channel
        self.stub = stub = api_grpc.APIStub(channel)
        self._calls = BatchedCalls(lambda: stub.Calls(metadata=metadata)) if batches else None
        self._senders: dict[str, Send] = {}

    def sender(self, method: str) -> Send:
        """Return the function that makes calls of a method with one response."""
        found = self._senders.get(method)
        if found is None:
            found = getattr(self.stub, method)
            if self._calls is not None and method in _BATCHED:
                found = partial(self._send, self._calls, found, *_BATCHED[method])
            self._senders[method] = found
        return found

    async def _send(
        self,
        calls: BatchedCalls,
        unary: Send,
        method: Method,
        response_type: type[Message],
        request: Message,
        *,
        timeout: float,
        metadata: Metadata | None,
    ) -> Message:
        """Make a call by the stream, or by itself where the stream does not take it."""
        data = request.SerializeToString()
        if calls.has_room(data):
            try:
                return response_type.FromString(await calls.call(method, data, timeout))
            except NotServedError:
                pass
        return await unary(request, timeout=timeout, metadata=metadata)

    def retire(self) -> None:
        """Make no more calls; those under way end by themselves."""
        if self._calls is not None:
            self._calls.retire()

    async def close(self) -> None:
        """End all calls and watches."""
        if self._calls is not None:
            await self._calls.close()
        await self._channel.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialer:
    """Connects a client to API servers; without a directory there are no run files and no credentials."""

    directory: Path | None
    component: str
    user_agent: str
    credential: str
    batches: bool

    def running(self) -> list[RunFile]:
        """Return the run files of the servers."""
        return [] if self.directory is None else list(RunFile.of_component(self.directory, self.component))

    def connect(self, address: str) -> Connection:
        """Return a connection to an address, with the client's credential where the server wants one."""
        options: list[tuple[str, int | str]] = list(CHANNEL_OPTIONS)
        if self.user_agent:
            options.append(("grpc.primary_user_agent", self.user_agent))
        running = self.running()
        known = next((found for found in running if found.grpc == address), next(iter(running), None))
        shown = credentials.find(known, self.directory, self.credential)
        return Connection(
            address,
            # What rules of call_faults compare: `apiserver`, or `apiserver-1` of several.
            known.name if known is not None else self.component,
            credentials.channel(address, shown, options),
            shown.metadata if shown is not None else None,
            batches=self.batches,
        )
