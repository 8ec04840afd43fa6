"""The recorder of core/v1 events: every message is an event, and equal events have a count.

Source: client-go 1.36, tools/record; kubelets, the controllers and the cluster autoscaler use it.
"""

from __future__ import annotations

from typing import Unpack

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.correlator import EventCorrelator
from nominee.machinery.events.recorder import BufferedRecorder, Recorded, RecorderOptions
from nominee.machinery.runtime.clock import rfc3339, to_time


class CorrelatingRecorder(BufferedRecorder):
    """Records core/v1 events. The recorder's instance is the host of the source; controllers have none."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        correlator: EventCorrelator | None = None,
        **options: Unpack[RecorderOptions],
    ) -> None:
        """`correlator`: shared by recorders whose events count as those of one source."""
        super().__init__(client, component, instance=instance, **options)
        self._correlator = correlator or EventCorrelator()

    async def _send(self, recorded: Recorded) -> bool:
        correlated = self._correlator.correlate(self._message(recorded), recorded.micros / 1_000_000)
        if correlated is None:
            return False
        event = correlated.event
        if correlated.created:
            await self._create(event)
            return True
        patch = {
            "count": event.count,
            "lastTimestamp": rfc3339(event.lastTimestamp),
            "message": event.message,
        }
        await self._patch(kinds.EVENT, event, patch)
        return True

    def _message(self, recorded: Recorded) -> core.Event:
        event = core.Event(
            involvedObject=recorded.regarding,
            reason=recorded.reason,
            message=recorded.note,
            type=recorded.type,
            count=1,
            reportingComponent=self._component,
            reportingInstance=recorded.instance,
        )
        event.source.component, event.source.host = self._component, recorded.instance
        event.metadata.name, event.metadata.namespace = recorded.name, recorded.namespace
        time = to_time(recorded.micros / 1_000_000)
        event.firstTimestamp.CopyFrom(time)
        event.lastTimestamp.CopyFrom(time)
        return event
