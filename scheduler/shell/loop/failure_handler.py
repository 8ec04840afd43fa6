"""Handle a failed attempt: requeue the pod, record an event, have its status written.

Source: kube-scheduler 1.36, handleSchedulingFailure; KEP-5278 for the nomination.
"""

from __future__ import annotations

from nominee.scheduler.attempts.pod import AfterFailure, Failed, Reason, after_failure
from nominee.scheduler.attempts.resize import is_resize
from nominee.scheduler.failure import is_recreated, requeue_failed
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.loop.deps import SchedulerDeps
from nominee.scheduler.shell.loop.features import SchedulerFeatures


class FailureHandler:
    """Performs `Effect.REQUEUE`."""

    def __init__(self, features: SchedulerFeatures, deps: SchedulerDeps) -> None:
        self._features = features
        self._deps = deps

    def handle(self, attempt: Attempt, failed: Failed) -> None:
        """Requeue the pod now and decide the call that writes its status.

        Nothing is requeued, recorded or written when another pod has the name by now.
        """
        deps, info, pod = self._deps, attempt.info, attempt.pod
        result = "unschedulable" if failed.reason is Reason.UNSCHEDULABLE else "error"
        seconds = deps.clock.monotonic() - attempt.started
        deps.metrics.attempted(result, attempt.framework.profile_name, seconds)
        decision_log.log_failed(attempt, failed, seconds)
        if is_recreated(pod, deps.calls.cached(pod.key)):
            deps.queue.done(pod.uid)
            return
        if attempt.scheduled is not None:
            deps.attempts.binding_failed(pod, failed)
        after = self._after(pod, failed)
        info.unschedulable_plugins = set(failed.unschedulable_plugins)
        info.pending_plugins = set(failed.pending_plugins)
        if after.call is not None:
            deps.calls.decide(after.call)
        requeue_failed(
            deps.queue,
            info,
            deps.calls.cached(pod.key),
            after.nominating,
            deps.queue_now(),
            is_queued_if_bound=after.is_queued_if_bound,
        )
        if after.records_event:
            attempt.recorder.failed_scheduling(pod.pod, failed.message)

    def _after(self, pod: PodInfo, failed: Failed) -> AfterFailure:
        if is_resize(pod.pod):
            return self._deps.resizes.after_failure(pod, failed)
        return after_failure(pod, failed, keeps_nominations=self._features.keeps_nominations)
