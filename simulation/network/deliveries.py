"""Deliveries of messages after a delay."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeVarTuple, Unpack

from nominee.simulation.event_loop.loop import SimulatedLoop
from nominee.simulation.network.delays import Delays

Ts = TypeVarTuple("Ts")
RETRY_SECONDS: Final = 0.05
"""How often a call that waits for a server looks for one."""
_SHORTEST_SECONDS: Final = 0.0001
LATE_WATCH_SECONDS: Final = 0.045
"""How far a late watch is behind for as long as it is open: about as long as the latest single message."""
PLAYER: Final = "user"
"""The process that plays a scenario; its watches are in time."""
_WATCH: Final = "/nominee.api.v1.API/Watch"


class Deliveries:
    """The messages under way. They belong to the network: a sender's end does not stop them."""

    def __init__(
        self,
        loop: SimulatedLoop,
        rng_of: Callable[[str], random.Random],
        delays: Delays | None = None,
        late_watches: float = 0.0,
    ) -> None:
        self.loop = loop
        self._rng_of = rng_of
        self._links: dict[str, random.Random] = {}
        """One generator for each connection: calls of one client do not change the delays of another."""
        self.delays = delays or Delays.drawn(rng_of("delays"))
        self._late_watches = late_watches
        self._watches = rng_of("late-watches")
        self._context = Context()
        self.messages = 0
        self._closed = False

    def redraw(self, rng_of: Callable[[str], random.Random]) -> None:
        """Draw a network, and the delays of all connections, from other generators from now on."""
        self._rng_of = rng_of
        self._links.clear()
        self.delays = Delays.drawn(rng_of("delays"))

    def close(self) -> None:
        """Deliver nothing any more."""
        self._closed = True

    def delay(self, link: str) -> float:
        """Draw the delay of a message of a connection."""
        self.messages += 1
        rng = self._links.get(link)
        if rng is None:
            rng = self._links[link] = self._rng_of(link)
        return self.delays.draw(rng)

    def behind(self, client: str, path: str) -> float:
        """Draw how far a call is behind for its client, in seconds: 0, but for a late watch."""
        if not self._late_watches or path != _WATCH or client == PLAYER:
            return 0.0
        return LATE_WATCH_SECONDS if self._watches.random() < self._late_watches else 0.0

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
