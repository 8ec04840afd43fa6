"""The network of a simulation: which servers there are, and how long messages take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import grpc
import grpc.aio

from nominee.simulation.network.call import RESET, Call, Exchange
from nominee.simulation.network.channel import SimulatedChannel
from nominee.simulation.network.server import SimulatedServer
from nominee.simulation.owner import Owner, OwnerState

KEEPALIVE_SECONDS: Final = 22.5
"""After so much silence of a frozen server its clients give their connections up."""


class Network(Exchange):
    """The network of one simulation; machinery.runtime.runtime.Transport for its processes."""

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
        if owner.state is not OwnerState.FROZEN:
            return
        for call in list(self.calls):
            if call.server is not None and call.server.owner is owner:
                self._break(call)
        self.froze(owner)

    def _break(self, call: Call) -> None:
        if call.server is not None:
            self.after_shortest_delay(call.server.cancel, call)
        call.end(RESET)
