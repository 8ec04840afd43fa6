"""Decide which core/v1 events are sent, and which only raise a count. Pure: time is an argument.

An event passes three stages. Events of one object that differ only in their messages are aggregated: from
the tenth message within ten minutes on they are one event, "(combined from similar events): ...". An equal
event is counted in the one that was sent first. And each source may send only so many events about an object:
a burst, then one in five minutes.

Source: client-go 1.36, tools/record EventCorrelator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from cachetools import LRUCache

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.runtime.queues.token_bucket import TokenBucket

COMBINED = "(combined from similar events): "
SpamKey = Callable[[core.Event], Hashable]


def object_key(event: core.Event) -> Hashable:
    """Return the source of an event and the object that it is about."""
    about, source = event.involvedObject, event.source
    return (
        source.component,
        source.host,
        about.kind,
        about.namespace,
        about.name,
        about.uid,
        about.apiVersion,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatorOptions:
    """Limits of a correlator; the defaults are client-go's."""

    messages_max: int = 10
    """From this number of different messages on, similar events are aggregated."""
    similar_seconds: float = 600.0
    """Events are similar while the last one is not older."""
    burst: int = 25
    per_second: float = 1 / 300
    keys_max: int = 4096
    """How many keys each stage remembers; the one that was used longest ago goes first."""
    spam_key: SpamKey = object_key
    """Events with equal keys share a burst."""


@dataclass(frozen=True, slots=True)
class Correlated:
    """An event to send. `created` False: an event of this name was sent before, and its count has grown."""

    event: core.Event
    created: bool


@dataclass(slots=True)
class _Similar:
    """Messages of similar events, at most one less than are aggregated."""

    last_seconds: float
    messages: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Sent:
    """The event in which equal ones are counted."""

    name: str
    first_seconds: int
    count: int


class EventCorrelator:
    """Correlates the events of one recorder, or of several that share it."""

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        self._options = options or CorrelatorOptions()
        size = self._options.keys_max
        self._similar: LRUCache[Hashable, _Similar] = LRUCache(size)
        self._sent: LRUCache[Hashable, _Sent] = LRUCache(size)
        self._buckets: LRUCache[Hashable, TokenBucket] = LRUCache(size)

    def correlate(self, event: core.Event, now_seconds: float) -> Correlated | None:
        """Return the event to send, a new one with count 1; None if its source has exceeded its rate.

        An event that is not sent is counted nevertheless.
        """
        event, key = self._aggregate(event, now_seconds)
        correlated = self._count(event, key)
        return correlated if self._may_send(correlated.event, now_seconds) else None

    def _aggregate(self, event: core.Event, now: float) -> tuple[core.Event, Hashable]:
        """Return the event, or the one that stands for all similar ones, and the key that counts it."""
        key = (object_key(event), event.type, event.reason)
        similar = self._similar.get(key)
        if similar is None or now - similar.last_seconds > self._options.similar_seconds:
            similar = _Similar(now)
        similar.last_seconds = now
        self._similar[key] = similar
        if len(similar.messages | {event.message}) < self._options.messages_max:
            similar.messages.add(event.message)
            return event, (key, event.involvedObject.fieldPath, event.message)
        combined = copy_of(event)
        combined.message = COMBINED + event.message
        combined.firstTimestamp.CopyFrom(to_time(now))
        combined.lastTimestamp.CopyFrom(to_time(now))
        return combined, key

    def _count(self, event: core.Event, key: Hashable) -> Correlated:
        sent = self._sent.get(key)
        if sent is not None:
            event.metadata.name = sent.name
            event.firstTimestamp.seconds = sent.first_seconds
            event.count = sent.count + 1
        self._sent[key] = _Sent(event.metadata.name, event.firstTimestamp.seconds, event.count)
        return Correlated(event, created=sent is None)

    def _may_send(self, event: core.Event, now: float) -> bool:
        key = self._options.spam_key(event)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._options.per_second, self._options.burst, now)
        self._buckets[key] = bucket
        return bucket.try_take(now)
