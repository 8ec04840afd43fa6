"""Hold the parts that the scheduling loop and the binding cycles use; `wiring` builds them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.attempts.resize import Resizes
from nominee.scheduler.dispatch.call_queue import CallQueue
from nominee.scheduler.extenders.client import ExtenderClient
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from nominee.scheduler.shell.attempt.attempt import AttemptHooks
from nominee.scheduler.shell.attempt.attempt_log import AttemptLog
from nominee.scheduler.shell.attempt.recorder import ProfileRecorder
from nominee.scheduler.shell.attempt.simulator_annotations import ResultWriter
from nominee.scheduler.shell.attempt.waiting_pods import WaitingPods
from nominee.scheduler.shell.calls.api_dispatcher import APIDispatcher
from nominee.scheduler.shell.calls.perform import Performer
from nominee.scheduler.shell.calls.signals import Signal
from nominee.scheduler.shell.metrics.tables import Metrics


class QueueClock:
    """Seconds since the epoch that never go back: wall time at the start, monotonic from then on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()

    def __call__(self) -> float:
        return self.at(self._clock.monotonic())

    def at(self, monotonic: float) -> float:
        """Return the time of a moment of `Clock.monotonic`."""
        return monotonic + self._offset


class PodActivator:
    """Moves pods to the active queue for plugins, which are built before the queue."""

    def __init__(self, now: QueueClock) -> None:
        self._now = now
        self._queue: PrioritySchedulingQueue | None = None

    def connect(self, queue: PrioritySchedulingQueue) -> None:
        """Set the queue, before the first scheduling cycle."""
        self._queue = queue

    def __call__(self, pods: Mapping[str, core.Pod]) -> None:
        """Activate pods by `ns/name`."""
        if self._queue is None:
            raise RuntimeError("a plugin activated pods while the scheduler was being built")
        self._queue.activate(pods.values(), self._now())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileParts:
    """One profile: its plugins, events, and the hooks of its attempts."""

    framework: Framework
    recorder: ProfileRecorder
    hooks: AttemptHooks


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerDeps:
    """The parts that scheduling and binding share."""

    client: Client
    performer: Performer
    clock: Clock
    queue_now: QueueClock
    rng: random.Random
    metrics: Metrics
    cache: Cache
    waiting: WaitingPods
    groups: SchedulingGroups
    profiles: Mapping[str, ProfileParts]  # by scheduler name
    queue: PrioritySchedulingQueue
    queue_signal: Signal
    calls: CallQueue
    dispatcher: APIDispatcher
    resizes: Resizes
    attempts: AttemptLog
    percentage_of_nodes_to_score: int | None = None
    extenders: ExtenderClient | None = None
    results: ResultWriter | None = None
