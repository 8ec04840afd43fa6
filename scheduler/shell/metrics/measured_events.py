"""Measure how long events and queueing hints take.

Source: kube-scheduler 1.36, event handlers and isPodWorthRequeuing. Upstream reads its clock too early for
additions and deletions (a deferred call's arguments are evaluated at once), so that its figures of those
are next to nothing; here they are what the queue takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.api.events import ClusterEvent, QueueingHint
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.queue.hints import AskHint, Registration, ask
from nominee.scheduler.queue.queue_events import (
    UNSCHEDULED_ADD,
    UNSCHEDULED_DELETE,
    UNSCHEDULED_UPDATE,
    event_label,
)
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from nominee.scheduler.shell.metrics.durations import Durations

HINT_ERROR: Final = "Error"
_log = logs.get()


class MeasuredQueue:
    """The calls that event handlers make on the queue, each timed under its event's name."""

    def __init__(self, queue: PrioritySchedulingQueue, seconds: Durations, clock: Clock) -> None:
        self._queue = queue
        self._seconds = seconds
        self._monotonic = clock.monotonic

    def _timed(self, event: ClusterEvent, call: Callable[[], None]) -> None:
        began = self._monotonic()
        call()
        self._seconds.of(event_label(event)).observe(self._monotonic() - began)

    def add(self, pod: PodInfo, now: float) -> None:
        self._timed(UNSCHEDULED_ADD, lambda: self._queue.add(pod, now))

    def update(self, old: core.Pod, new: PodInfo, now: float) -> None:
        self._timed(UNSCHEDULED_UPDATE, lambda: self._queue.update(old, new, now))

    def delete(self, pod: core.Pod) -> None:
        self._timed(UNSCHEDULED_DELETE, lambda: self._queue.delete(pod))

    def move_all(
        self,
        event: ClusterEvent,
        old: Message | None,
        new: Message | None,
        now: float,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        self._timed(event, lambda: self._queue.move_all(event, old, new, now, only))


def timed_ask(seconds: Durations, clock: Clock) -> AskHint:
    """Ask hints and record how long each took, by plugin, event and result; log those that raise."""
    monotonic = clock.monotonic

    def timed(
        registration: Registration,
        event: ClusterEvent,
        pod: PodInfo,
        old: Message | None,
        new: Message | None,
    ) -> QueueingHint:
        word, began = HINT_ERROR, monotonic()
        try:
            hint = ask(registration, event, pod, old, new)
            word = hint.value
            return hint
        except Exception:
            _log.exception(
                "A queueing hint failed",
                pod=pod.key,
                plugin=registration.plugin,
                cluster_event=event_label(event),
            )
            raise
        finally:
            seconds.of(registration.plugin, event_label(event), word).observe(monotonic() - began)

    return timed
