"""Handle a failed attempt: requeue the pod, record an event, have its status written.

Source: kube-scheduler 1.36, handleSchedulingFailure; KEP-5278 for the nomination.
"""

from __future__ import annotations

from nominee.scheduler.attempts.pod import Failed, Reason, nomination_after
from nominee.scheduler.dispatch.api_calls import PodStatusPatch, failure
from nominee.scheduler.failure import is_recreated, requeue_failed
from nominee.scheduler.framework.deferred_resize import Flavour
from nominee.scheduler.shell.attempt import Attempt
from nominee.scheduler.shell.deps import SchedulerDeps
from nominee.scheduler.shell.features import SchedulerFeatures


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
        if is_recreated(pod, deps.calls.cached(pod.key)):
            deps.queue.done(pod.uid)
            return
        if attempt.scheduled is not None:
            deps.attempts.binding_failed(pod, failed)
        if pod.pod.spec.nodeName:
            self._resize_failed(attempt, failed)
            return
        nominating = nomination_after(failed.nominating, keeps_nominations=self._features.keeps_nominations)
        info.unschedulable_plugins = set(failed.unschedulable_plugins)
        info.pending_plugins = set(failed.pending_plugins)
        deps.calls.decide(failure(pod.pod, failed, nominating))
        requeue_failed(deps.queue, info, deps.calls.cached(pod.key), nominating, deps.queue_now())
        attempt.recorder.failed_scheduling(pod.pod, failed.message)

    def _resize_failed(self, attempt: Attempt, failed: Failed) -> None:
        """Requeue a pod whose resize is still deferred; it is bound, and its PodScheduled stays True.

        An event reports the result, as the KEP plans for beta; Kubernetes 1.37 records none. Source:
        KEP-5836, "Failure Handler Adjustments for Deferred Pods".
        """
        deps, info, resizes = self._deps, attempt.info, self._deps.resizes
        assert resizes is not None, "only deferred resizes bring bound pods into the queue"
        uid = attempt.pod.uid
        info.unschedulable_plugins = set(failed.unschedulable_plugins)
        info.pending_plugins = set(failed.pending_plugins)
        nominating = resizes.nomination_after(failed.nominating)
        if nominating is not None:
            deps.calls.decide(PodStatusPatch(pod=attempt.pod.pod, nominating=nominating))
        cached = deps.calls.cached(attempt.pod.key)
        requeue_failed(deps.queue, info, cached, nominating, deps.queue_now(), resizes=resizes.is_queued(uid))
        if resizes.options.flavour is Flavour.KEP:
            attempt.recorder.failed_scheduling(attempt.pod.pod, failed.message)
