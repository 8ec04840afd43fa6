"""Handle a failed attempt: requeue the pod, record an event, have its status written.

Source: kube-scheduler 1.36, handleSchedulingFailure; KEP-5278 for the nomination.
"""

from __future__ import annotations

import anyio.abc

from scheduler.cycle import Failed, Reason, nomination_after
from scheduler.failure import is_recreated, requeue_failed
from scheduler.shell.attempt import Attempt
from scheduler.shell.deps import SchedulerDeps
from scheduler.shell.features import SchedulerFeatures


class FailureHandler:
    """Performs `Effect.REQUEUE`."""

    def __init__(self, features: SchedulerFeatures, deps: SchedulerDeps) -> None:
        self._features = features
        self._deps = deps

    def handle(self, attempt: Attempt, failed: Failed, group: anyio.abc.TaskGroup) -> None:
        """Requeue the pod now and have its status written by a task of `group`.

        Nothing is requeued, recorded or written when another pod has the name by now.
        """
        deps, info, pod = self._deps, attempt.info, attempt.pod
        result = "unschedulable" if failed.reason is Reason.UNSCHEDULABLE else "error"
        seconds = deps.clock.monotonic() - attempt.started
        deps.metrics.attempted(result, attempt.framework.profile_name, seconds)
        if is_recreated(pod, deps.cached(pod.key)):
            deps.queue.done(pod.uid)
            return
        if attempt.scheduled is not None:
            deps.attempts.binding_failed(pod, failed)
        nominating = nomination_after(failed.nominating, keeps_nominations=self._features.keeps_nominations)
        info.unschedulable_plugins = set(failed.unschedulable_plugins)
        info.pending_plugins = set(failed.pending_plugins)
        ticket = deps.writer.ticket(pod.uid, nominating)
        requeue_failed(deps.queue, info, deps.cached(pod.key), nominating, deps.queue_now())
        attempt.recorder.failed_scheduling(pod.pod, failed.message)
        deps.writer.write_failure(ticket, pod.pod, failed, group)
