"""A channel, as generated stubs use it."""

from __future__ import annotations

from collections.abc import Callable

from nominee.simulation.network.call import RESET, Call, Exchange, Metadata, StreamCall, UnaryCall

Encode = Callable[[object], bytes]
Decode = Callable[[bytes], object]
_AGENT = "grpc-python-asyncio/simulated"


class SimulatedChannel:
    """The methods of grpc.aio.Channel that stubs and components use."""

    def __init__(self, network: Exchange, target: str, user_agent: str) -> None:
        self._network = network
        self._target = target
        self._agent = ("user-agent", f"{user_agent} {_AGENT}" if user_agent else _AGENT)
        self._calls: dict[Call, None] = {}

    def unary_unary(
        self, path: str, request_serializer: Encode, response_deserializer: Decode, **_: object
    ) -> Callable[..., UnaryCall]:
        """Return a function that makes a call with one response."""

        def call(
            request: object,
            *,
            timeout: float | None = None,
            metadata: Metadata | None = None,
            wait_for_ready: bool = False,
        ) -> UnaryCall:
            made = UnaryCall(
                self._network, self._target, path, self._with_agent(metadata), timeout, response_deserializer
            )
            data = request_serializer(request)
            if self._network.tap is not None:
                self._network.tap.on_request(made, data)
            made.to_server.arrive(data)
            made.start(wait_for_ready=wait_for_ready)
            return made

        return call

    def unary_stream(
        self, path: str, request_serializer: Encode, response_deserializer: Decode, **_: object
    ) -> Callable[..., StreamCall]:
        """Return a function that makes a call with many responses."""

        def call(
            request: object, *, timeout: float | None = None, metadata: Metadata | None = None
        ) -> StreamCall:
            made = self._stream(path, timeout, metadata, request_serializer, response_deserializer)
            data = request_serializer(request)
            if self._network.tap is not None:
                self._network.tap.on_request(made, data)
            made.to_server.arrive(data)
            made.start(wait_for_ready=False)
            return made

        return call

    def stream_stream(
        self, path: str, request_serializer: Encode, response_deserializer: Decode, **_: object
    ) -> Callable[..., StreamCall]:
        """Return a function that makes a call with many requests and responses."""

        def call(*, timeout: float | None = None, metadata: Metadata | None = None) -> StreamCall:
            made = self._stream(path, timeout, metadata, request_serializer, response_deserializer)
            made.start(wait_for_ready=False)
            return made

        return call

    stream_unary = stream_stream

    def _stream(
        self, path: str, timeout: float | None, metadata: Metadata | None, encode: Encode, decode: Decode
    ) -> StreamCall:
        made = StreamCall(
            self._network, self._target, path, self._with_agent(metadata), timeout, decode, encode
        )
        # Calls that have ended are dropped here, so that the table stays as small as what is open.
        self._calls = {call: None for call in self._calls if not call.ended}
        self._calls[made] = None
        return made

    def _with_agent(self, metadata: Metadata | None) -> Metadata:
        return (*(metadata or ()), self._agent)

    async def close(self, grace: float | None = None) -> None:
        """Cancel the streams that are open."""
        for call in [call for call in self._calls if not call.ended]:
            call.cancel(RESET)
        self._calls.clear()

    async def __aenter__(self) -> SimulatedChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
