"""The recorder of events.k8s.io/v1 events: repeated events become a series of one event.

Source: client-go 1.36, tools/events; kube-scheduler uses it.
"""

from __future__ import annotations

from typing import Unpack

import anyio

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import events
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.recorder import BufferedRecorder, Recorded, RecorderOptions
from nominee.machinery.events.series import SERIES_SECONDS, EventSeriesCache
from nominee.machinery.runtime import host
from nominee.machinery.runtime.clock import rfc3339_micro, to_micro_time

REFRESH_SECONDS = 30 * 60.0
NOTE_BYTES_MAX = 1024


class SeriesRecorder(BufferedRecorder):
    """Records events.k8s.io/v1 events as one reporting controller.

    The note is not part of a series' identity: of events that differ only in their notes the first is kept.
    """

    def __init__(
        self, client: Client, component: str, *, instance: str = "", **options: Unpack[RecorderOptions]
    ) -> None:
        here = f"{component}-{host.current().name()}"
        super().__init__(client, component, instance=instance or here, **options)
        self._series = EventSeriesCache()

    async def run(self) -> None:
        """Send events, and the counts of series, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(super().run)
            group.start_soon(self._send_counts)

    async def _send_counts(self) -> None:
        refresh_at = self._clock.monotonic() + REFRESH_SECONDS
        while True:
            await self._clock.sleep(SERIES_SECONDS)
            grown = self._series.finish(self._clock.now())
            if self._clock.monotonic() >= refresh_at:
                grown += self._series.refresh()
                refresh_at = self._clock.monotonic() + REFRESH_SECONDS
            for event in grown:
                await self._put(event)

    async def _send(self, recorded: Recorded) -> bool:
        event = self._series.record(self._message(recorded))
        if event is None:
            return False
        if not await self._put(event):
            self._series.forget(event)
        return True

    def _message(self, recorded: Recorded) -> events.Event:
        event = events.Event(
            reportingController=self._component,
            reportingInstance=recorded.instance,
            type=recorded.type,
            reason=recorded.reason,
            action=recorded.action or recorded.reason,
            note=_cut(recorded.note),
            regarding=recorded.regarding,
            related=recorded.related,
        )
        event.metadata.name, event.metadata.namespace = recorded.name, recorded.namespace
        event.eventTime.CopyFrom(to_micro_time(recorded.micros / 1_000_000))
        return event

    async def _put(self, event: events.Event) -> bool:
        if not event.HasField("series"):
            return await self._create(event)
        series = {
            "count": event.series.count,
            "lastObservedTime": rfc3339_micro(event.series.lastObservedTime),
        }
        return await self._patch(kinds.EVENTS_EVENT, event, {"series": series})


def _cut(note: str) -> str:
    data = note.encode()
    if len(data) <= NOTE_BYTES_MAX:
        return note
    return data[: NOTE_BYTES_MAX - 3].decode(errors="ignore") + "..."
