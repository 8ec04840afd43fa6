"""What is done about a failed attempt: back to the queue, an event, the pod's status.

Source: kube-scheduler 1.36, handleSchedulingFailure; KEP-5278 for the nomination.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio.abc

from machinery.clock import Clock
from machinery.objects import ObjectKey
from machinery.pb import core
from scheduler.cycle import Failed, Reason, nomination_after
from scheduler.failure import is_recreated, requeue_failed
from scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from scheduler.shell.attempt import Attempt
from scheduler.shell.attempt_log import AttemptLog
from scheduler.shell.metrics import Metrics
from scheduler.shell.status_writer import StatusWriter
from scheduler.way import Step


class FailureHandler:
    """See the module's text.

    `cached` gives the pod that the watch last showed under a name, with the nomination that counts.
    """

    def __init__(
        self,
        queue: PrioritySchedulingQueue,
        writer: StatusWriter,
        metrics: Metrics,
        attempts: AttemptLog,
        clock: Clock,
        *,
        cached: Callable[[ObjectKey], core.Pod | None],
        queue_now: Callable[[], float],
        keeps_nominations: bool,
    ) -> None:
        self._queue = queue
        self.writer = writer
        self._metrics = metrics
        self._attempts = attempts
        self._clock = clock
        self._cached = cached
        self._queue_now = queue_now
        self._keeps_nominations = keeps_nominations

    def handle(self, attempt: Attempt, failed: Failed, group: anyio.abc.TaskGroup) -> None:
        """Requeue the pod now and have its status written by a task of `group`.

        Nothing is requeued, recorded or written when another pod has the name by now.
        """
        info, framework = attempt.info, attempt.framework
        attempt.way.to(Step.BACK, self._clock.monotonic())
        result = "unschedulable" if failed.reason is Reason.UNSCHEDULABLE else "error"
        seconds = self._clock.monotonic() - attempt.started
        self._metrics.attempted(result, framework.profile_name, seconds)
        if is_recreated(attempt.pod, self._cached(attempt.pod.key)):
            self._queue.done(attempt.pod.uid)
            return
        if attempt.scheduled is not None:
            self._attempts.came_back(attempt.pod, failed)
        nominating = nomination_after(failed.nominating, keeps_nominations=self._keeps_nominations)
        info.unschedulable_plugins = set(failed.unschedulable_plugins)
        info.pending_plugins = set(failed.pending_plugins)
        ticket = self.writer.ticket(attempt.pod.uid, nominating)
        cached = self._cached(attempt.pod.key)
        requeue_failed(self._queue, info, cached, nominating, self._queue_now())
        attempt.recorder.failed_scheduling(attempt.pod.pod, failed.message)
        self.writer.write_failure(ticket, attempt.pod.pod, failed, group)
