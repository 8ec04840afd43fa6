"""A watch's events on their way to a client, as both fronts send them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nominee.apiserver.objects.watcher import Watcher, WatchEvent
from nominee.machinery.runtime import failpoints

BEFORE_SEND = failpoints.declare(
    "apiserver.watch.send", "a batch of events is taken from the watch cache; it is not sent to the client"
)
"""Events are taken from the watch cache and not sent yet."""


async def send_batches(
    watcher: Watcher, resource: str, send: Callable[[list[WatchEvent]], Awaitable[None]]
) -> None:
    """Send batches of events until the watch ends. Raises: StatusError that ends the watch.

    An event after a silence is sent at once; those behind it gather until the turn of all watches ends.
    """
    async for batch in watcher:
        await BEFORE_SEND.hit(resource=resource)
        await send(batch)
        if watcher.rest is not None:
            await watcher.rest()
