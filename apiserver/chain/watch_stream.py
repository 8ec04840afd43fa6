"""A watch's events on their way to a client, as both fronts send them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nominee.apiserver.objects.watcher import Watcher, WatchEvent
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import Clock

GATHER_SECONDS = 0.002
"""After an event that followed a silence, for others to follow it in one message."""
BEFORE_SEND = failpoints.declare(
    "apiserver.watch.send", "a batch of events is taken from the watch cache; it is not sent to the client"
)
"""Events are taken from the watch cache and not sent yet."""


async def send_batches(
    watcher: Watcher, resource: str, clock: Clock, send: Callable[[list[WatchEvent]], Awaitable[None]]
) -> None:
    """Send batches of events until the watch ends. Raises: StatusError that ends the watch.

    An event after a silence is sent at once; those behind it gather, which makes one message of several under
    load: a message costs both ends more than its events do.
    """
    async for batch in watcher:
        await BEFORE_SEND.hit(resource=resource)
        await send(batch)
        await clock.sleep(GATHER_SECONDS)
