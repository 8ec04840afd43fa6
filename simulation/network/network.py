"""The network of a simulation: which servers there are, and how long messages take."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Final, TypeVarTuple, Unpack, cast

import grpc
import grpc.aio

from nominee.simulation.loop import SimulatedLoop
from nominee.simulation.network.call import RESET, Call
from nominee.simulation.network.channel import SimulatedChannel
from nominee.simulation.network.delays import Delays
from nominee.simulation.network.server import SimulatedServer
from nominee.simulation.owner import Owner, State

Ts = TypeVarTuple("Ts")
RETRY_SECONDS: Final = 0.05
"""How often a call that waits for a server looks for one."""
KEEPALIVE_SECONDS: Final = 22.5
"""After so much silence of a frozen server its clients give their connections up."""
_SHORTEST_SECONDS: Final = 0.0001
_FIRST_PORT: Final = 20_000


class Network:
    """The network of one simulation; machinery.client.transport.Transport for its processes."""

    def __init__(
        self, loop: SimulatedLoop, rng_of: Callable[[str], random.Random], delays: Delays | None = None
    ) -> None:
        self.loop = loop
        self._rng_of = rng_of
        self._links: dict[str, random.Random] = {}
        """One generator for each connection: calls of one client do not change the delays of another."""
        self.delays = delays or Delays.drawn(rng_of("delays"))
        self.calls: dict[Call, None] = {}
        """The open calls, in the order of their beginning."""
        self._servers: dict[str, SimulatedServer] = {}
        self._port = _FIRST_PORT
        self._context = Context()
        self.messages = 0
        self._closed = False

    def close(self) -> None:
        """Deliver nothing any more."""
        self._closed = True

    # Transport.

    def channel(
        self,
        target: str,
        credentials: grpc.ChannelCredentials | None,
        options: Sequence[tuple[str, int | str]],
    ) -> grpc.aio.Channel:
        agents = [str(value) for name, value in options if name == "grpc.primary_user_agent"]
        made = SimulatedChannel(self, target, agents[0] if agents else "")
        return cast("grpc.aio.Channel", made)

    def server(
        self,
        options: Sequence[tuple[str, int | str]],
        *,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        calls_max: int | None = None,
    ) -> grpc.aio.Server:
        return cast("grpc.aio.Server", SimulatedServer(self, interceptors, calls_max))

    # Servers.

    def free_port(self) -> int:
        """Return a port that no server has had."""
        self._port += 1
        return self._port

    def listen(self, address: str, server: SimulatedServer) -> None:
        self._servers[address] = server

    def unlisten(self, server: SimulatedServer) -> None:
        self._servers = {at: each for at, each in self._servers.items() if each is not server}

    def server_at(self, target: str) -> SimulatedServer | None:
        """Return the server at an address, None if no process listens there."""
        found = self._servers.get(target)
        return found if found is not None and found.serves else None

    # Time. Deliveries belong to the network: they happen whatever becomes of sender and receiver.

    def delay(self, link: str) -> float:
        """Draw the delay of a message of a connection."""
        self.messages += 1
        rng = self._links.get(link)
        if rng is None:
            rng = self._links[link] = self._rng_of(link)
        return self.delays.draw(rng)

    def at(self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Call back at a time of the loop."""
        if self._closed:
            return
        self.loop.call_at(when, callback, *args, context=self._context)

    def after_delay(self, link: str, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call back when a message that is sent now has arrived."""
        self.at(self.loop.time() + self.delay(link), callback, *args)

    def after_shortest_delay(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Call back after a fixed delay, without drawing a random number."""
        self.at(self.loop.time() + _SHORTEST_SECONDS, callback, *args)

    def after_retry(self, callback: Callable[[], object]) -> None:
        """Call back when a client looks for the server again."""
        self.at(self.loop.time() + RETRY_SECONDS, callback)

    # Processes that die or freeze.

    def died(self, owner: Owner) -> None:
        """Break the connections of a process that was killed."""
        for server in [each for each in self._servers.values() if each.owner is owner]:
            self.unlisten(server)
        for call in list(self.calls):
            if call.client is owner:
                self.calls.pop(call)
                call.ended = True
                if call.server is not None:
                    self.after_shortest_delay(call.server.cancel, call)
            elif call.server is not None and call.server.owner is owner:
                self.after_shortest_delay(call.end, RESET)

    def froze(self, owner: Owner) -> None:
        """Let clients of a frozen process give up when it has been silent for long."""
        self.at(self.loop.time() + KEEPALIVE_SECONDS, self._give_up, owner, self.loop.time())

    def _give_up(self, owner: Owner, since: float) -> None:
        if owner.state is not State.FROZEN:
            return
        for call in list(self.calls):
            if call.server is not None and call.server.owner is owner:
                self._break(call)
        self.froze(owner)

    def _break(self, call: Call) -> None:
        if call.server is not None:
            self.after_shortest_delay(call.server.cancel, call)
        call.end(RESET)
