"""Keep the events since pods were popped, until their attempts are done.

When an attempt fails, the events since then are considered: they may have made the pod schedulable.
Source: kube-scheduler 1.36, active queue (KEP-4247, in-flight events).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from nominee.scheduler.framework.api.events import ClusterEvent
from nominee.scheduler.framework.types import PodInfo

EVENTS_MAX: Final = 100_000


@dataclass(slots=True)
class _PodEntry:
    pod: PodInfo
    alive: bool = True
    lost_events: bool = False


@dataclass(frozen=True, slots=True)
class InFlightEvent:
    event: ClusterEvent
    old: Message | None
    new: Message | None


class InFlight:
    """Pods and events in the order in which they came; events older than the oldest pod are dropped.

    Beyond `EVENTS_MAX` events (a pod waits on Permit for long in a busy cluster) all are dropped and the pods
    in flight are marked: they are then retried whatever rejected them.
    """

    def __init__(self) -> None:
        self._entries: deque[_PodEntry | InFlightEvent] = deque()
        self._first = 0  # position of the first entry since the beginning of time
        self._positions: dict[str, int] = {}  # uid -> position of the pod's entry
        self._event_count = 0

    def __len__(self) -> int:
        """Return how many pods are in flight."""
        return len(self._positions)

    def __contains__(self, uid: str) -> bool:
        return uid in self._positions

    def pods(self) -> list[PodInfo]:
        """Return the pods in the order in which they were popped."""
        return [entry.pod for entry in self._entries if isinstance(entry, _PodEntry) and entry.alive]

    def log(self) -> Iterator[PodInfo | ClusterEvent]:
        """Return all that is kept, pods and events, in order."""
        for entry in self._entries:
            if isinstance(entry, InFlightEvent):
                yield entry.event
            elif entry.alive:
                yield entry.pod

    def start(self, pod: PodInfo) -> bool:
        """Enter a popped pod; return False when one of that uid is in flight already."""
        if pod.uid in self._positions:
            return False
        self._positions[pod.uid] = self._first + len(self._entries)
        self._entries.append(_PodEntry(pod))
        return True

    def record(self, event: ClusterEvent, old: Message | None, new: Message | None) -> None:
        """Keep an event if any pod is in flight."""
        if not self._positions:
            return
        if self._event_count >= EVENTS_MAX:
            self._drop_events()
        self._event_count += 1
        self._entries.append(InFlightEvent(event, old, new))

    def record_for(
        self, uid: str, events: Iterable[ClusterEvent], old: Message | None, new: Message | None
    ) -> bool:
        """Keep events of a pod's own if it is in flight; return whether it is."""
        if uid not in self._positions:
            return False
        for event in events:
            self.record(event, old, new)
        return True

    def events_since(self, uid: str) -> list[InFlightEvent] | None:
        """Return the events since the pod was popped; None when it is not in flight or events were lost."""
        position = self._positions.get(uid)
        if position is None:
            return None
        index = position - self._first
        own = self._entries[index]
        if isinstance(own, _PodEntry) and own.lost_events:
            return None
        rest = itertools.islice(self._entries, index + 1, None)
        return [entry for entry in rest if isinstance(entry, InFlightEvent)]

    def done(self, uid: str) -> None:
        """Remove a pod and the events that only it needs; do nothing when it is not in flight."""
        position = self._positions.pop(uid, None)
        if position is None:
            return
        entry = self._entries[position - self._first]
        assert isinstance(entry, _PodEntry)
        entry.alive = False
        self._trim()

    def _trim(self) -> None:
        """Drop the events before the oldest pod."""
        entries = self._entries
        while entries and not (isinstance(entries[0], _PodEntry) and entries[0].alive):
            if isinstance(entries.popleft(), InFlightEvent):
                self._event_count -= 1
            self._first += 1

    def _drop_events(self) -> None:
        pods = [entry for entry in self._entries if isinstance(entry, _PodEntry) and entry.alive]
        for entry in pods:
            entry.lost_events = True
        self._entries = deque(pods)
        self._first = 0
        self._positions = {entry.pod.uid: position for position, entry in enumerate(pods)}
        self._event_count = 0
