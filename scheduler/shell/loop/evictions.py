"""Make room for a pod: perform PostFilter's follow-up, in the background or before going on (KEP-4832)."""

from __future__ import annotations

from collections.abc import Callable

import anyio.abc

from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.pod import Failed
from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.interface import PluginWork, PostFilterResult, Status
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.loop.deps import SchedulerDeps

_log = logs.get()


class Evictions:
    """The follow-ups of PostFilter plugins that are under way."""

    def __init__(self, deps: SchedulerDeps) -> None:
        self._deps = deps
        self.running = 0

    async def make_room(
        self, attempt: Attempt, failed: Failed, result: PostFilterResult, group: anyio.abc.TaskGroup
    ) -> Failed:
        """Start or do PostFilter's follow-up; return the failure, reworded if that did not work."""
        if result.preceding is not None:
            status = await self._perform(attempt, result.preceding)
            if status is not None and not status.is_success:
                return cycle.eviction_failed(failed, status)
        if result.follow_up is None:
            return failed
        if result.candidate is not None:
            self._deps.metrics.preemption_victims.observe(len(result.candidate.victims))
            decision_log.log_preemption(attempt, result)
        if result.background:
            if result.begin is not None:
                result.begin()
            group.start_soon(self._follow_up, attempt, result)
            return failed
        status = await self._follow_up(attempt, result)
        if status is None or status.is_success:
            return failed
        return cycle.eviction_failed(failed, status)

    async def _follow_up(self, attempt: Attempt, result: PostFilterResult) -> Status | None:
        assert result.follow_up is not None
        metrics, clock = self._deps.metrics, self._deps.clock
        began = clock.monotonic()
        status = await self._perform(attempt, result.follow_up)
        if result.background:
            label = "success" if is_success(status) else "error"
            metrics.preemption_tasks.labels(label).inc()
            metrics.preemption_task_seconds.labels(label).observe(clock.monotonic() - began)
        self._release_preemptor(attempt, result)
        return status

    async def _perform(self, attempt: Attempt, follow_up: Callable[[], PluginWork]) -> Status | None:
        self.running += 1
        try:
            status: Status | None = await self._deps.performer.run(follow_up())
        except Exception as error:  # noqa: BLE001  # plugins come from outside
            status = Status.as_error(error)
        finally:
            self.running -= 1
        if status is not None and not status.is_success:
            expected = isinstance(status.error, StatusError | FailpointError)
            _log.warning(
                "Preemption failed", pod=attempt.pod.key, step="preempt", error=status.message(),
                exc_info=None if expected else status.error,
            )  # fmt: skip
        return status

    def _release_preemptor(self, attempt: Attempt, result: PostFilterResult) -> None:
        """Activate a preemptor that was held back during the evictions where no event will do it.

        Victims that were only stopped (on Permit, in PreBind) may have gone before the eviction was over:
        their event found the preemptor held back, and no other will come. A deferred resize that left the
        queue meanwhile and came back was rejected by no plugin that an event could concern.
        """
        queue = self._deps.queue
        info = queue.get(attempt.pod.key)
        if info is None or not info.gated or info.pod.spec.schedulingGates:
            return
        victims = () if result.candidate is None else result.candidate.victims
        if info is not attempt.info or any(not victim.pod.spec.nodeName for victim in victims):
            queue.activate([info.pod], self._deps.queue_now())
