"""Count repetitions of an event about an object in a series. Pure: time is an argument.

The first time is sent as an event; the second makes it a series of two, which is sent; further ones are only
counted, and the count is sent now and then (`refresh`) and when the series has ended (`finish`).
Source: client-go 1.36, tools/events.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, events
from nominee.machinery.runtime.clock import from_time, to_micro_time

SERIES_SECONDS = 6 * 60.0
"""A series that was not continued for so long has ended; the next time starts a new event."""
SERIES_MAX = 4096


class _Reference(NamedTuple):
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    field_path: str


class EventKey(NamedTuple):
    """The fields that make two events one series; the note is not among them."""

    type: str
    action: str
    reason: str
    controller: str
    instance: str
    regarding: _Reference
    related: _Reference | None


def key_of_event(event: events.Event) -> EventKey:
    """Return the key of an event's series."""
    return EventKey(
        event.type,
        event.action,
        event.reason,
        event.reportingController,
        event.reportingInstance,
        _parts(event.regarding),
        _parts(event.related) if event.HasField("related") else None,
    )


def _parts(ref: core.ObjectReference) -> _Reference:
    return _Reference(
        ref.apiVersion, ref.kind, ref.namespace, ref.name, ref.uid, ref.resourceVersion, ref.fieldPath
    )


@dataclass(slots=True)
class _Series:
    """An event as it was sent; `unsent` counts since."""

    event: events.Event
    last_seconds: float
    unsent: int = 0


class EventSeriesCache:
    """The events that were recorded lately, at most SERIES_MAX; the oldest are dropped first."""

    def __init__(self) -> None:
        self._series: OrderedDict[EventKey, _Series] = OrderedDict()

    def record(self, event: events.Event) -> events.Event | None:
        """Return the event to send, or the series that begins with this event, or None."""
        key = key_of_event(event)
        now = from_time(event.eventTime)
        known = self._series.get(key)
        if known is None or now - known.last_seconds >= SERIES_SECONDS:
            self._series.pop(key, None)
            self._series[key] = _Series(event, now)
            while len(self._series) > SERIES_MAX:
                self._series.popitem(last=False)
            return event
        self._series.move_to_end(key)
        known.last_seconds = now
        first = not known.event.HasField("series")
        series = known.event.series
        series.count = 2 if first else series.count + 1
        series.lastObservedTime.CopyFrom(to_micro_time(now))
        known.unsent += 1
        return self._sent(known) if first else None

    def forget(self, event: events.Event) -> None:
        """Drop an event that could not be sent: the next one is sent as a first one."""
        self._series.pop(key_of_event(event), None)

    def refresh(self) -> list[events.Event]:
        """Return the series whose count has grown since it was sent."""
        return [self._sent(known) for known in self._series.values() if known.unsent]

    def finish(self, now: float) -> list[events.Event]:
        """Drop the series that did not recur for SERIES_SECONDS; return those whose count is unsent."""
        last: list[events.Event] = []
        for key, known in list(self._series.items()):
            if now - known.last_seconds < SERIES_SECONDS:
                break
            del self._series[key]
            if known.unsent:
                last.append(self._sent(known))
        return last

    def __len__(self) -> int:
        return len(self._series)

    @staticmethod
    def _sent(known: _Series) -> events.Event:
        known.unsent = 0
        copy = copy_of(known.event)
        return copy
