"""Follow the objects of one kind: list, then watch from the list's revision, until cancelled.

A watch that ends or breaks is resumed from the last revision that was seen, bookmarks included; so nothing is
missed while an API server restarts. Where that revision is compacted (410) everything is listed again.
Source: client-go 1.36, tools/cache Reflector; its gate WatchListClient decides which state is listed first
(KEP-3157; this reflector lists where client-go streams).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Generic

from nominee.machinery.api.errors import StatusError, is_gone, is_retryable, is_too_large_resource_version
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.client.api_client import Client, WatchEvent
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff, Retries

WATCH_SECONDS_MIN = 300
"""A watch is asked to last this long, or up to twice as long, so that not all end together."""
SHORT_WATCH_SECONDS = 1.0
_BACKOFF = ExponentialBackoff(initial_seconds=0.05, max_seconds=1.0)
_JITTER = 0.5


class Reflector(Generic[M]):
    """Hands on the objects of a kind, a namespace and a selector.

    `replace` takes all objects at a revision, `apply` the next changes, in order; bookmarks are among them.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[M],
        *,
        replace: Callable[[Sequence[M]], Awaitable[None]],
        apply: Callable[[Sequence[WatchEvent[M]]], Awaitable[None]],
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._replace, self._apply = replace, apply
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._retries = Retries(_BACKOFF, jitter=_JITTER, rng=self._rng)
        self._log = logs.get(kind=kind.group_resource)
        # What the next list asks for: "0" is any state that the server has cached, "" the newest; after the
        # first list none that is older than was seen. A process that begins with "0" may go back in time.
        self._list_from = "" if client.lists_newest_first else "0"
        self.resource_version = ""
        self.lists = 0
        self.watches = 0

    async def run(self) -> None:
        """Follow until cancelled; errors of the API server are logged and tried again after a back-off."""
        while True:
            try:
                await self._list()
                await self._watch()
            except StatusError as error:
                if _is_out_of_reach(error):
                    self._log.info("Listing again", reason=error.message)
                else:
                    self._log.warning("Following failed", code=error.code, reason=error.message)
                await self._pause(error)

    async def _list(self) -> None:
        try:
            result = await self._client.list(
                self._kind,
                self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                resource_version=self._list_from,
            )
        except StatusError as error:
            if _is_out_of_reach(error):
                self._list_from = ""
            raise
        self.lists += 1
        await self._replace(result.items)
        self.resource_version = self._list_from = result.resource_version

    async def _watch(self) -> None:
        """Watch again and again; raises StatusError when it takes a new list to go on."""
        while True:
            started = self._clock.monotonic()
            try:
                seen = await self._watch_once()
            except StatusError as error:
                if not is_retryable(error) or is_too_large_resource_version(error):
                    raise
                # The server is gone, or not yet back: its revisions stay good.
                self._log.info("Watch broke", code=error.code, reason=error.message)
                await self._pause(error)
            else:
                if not seen and self._clock.monotonic() - started < SHORT_WATCH_SECONDS:
                    await self._pause(None)

    async def _watch_once(self) -> bool:
        """Run one watch to its end; return whether there was an event."""
        batches = self._client.watch_batches(
            self._kind,
            self._namespace,
            resource_version=self.resource_version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=int(WATCH_SECONDS_MIN * (1 + self._rng.random())),
        )
        seen = False
        self.watches += 1
        async with aclosing(batches):
            async for batch in batches:
                if not batch:
                    continue
                await self._apply(batch)
                self.resource_version = self._list_from = str(batch[-1].revision)
                seen = True
                self._retries.reset()
        return seen

    async def _pause(self, error: StatusError | None) -> None:
        asked = min(error.retry_after_seconds, _BACKOFF.max_seconds) if error is not None else 0.0
        await self._clock.sleep(max(self._retries.next_delay(), asked))


def _is_out_of_reach(error: StatusError) -> bool:
    """Return whether the revision is compacted, or later than the server's state."""
    return is_gone(error) or is_too_large_resource_version(error)
