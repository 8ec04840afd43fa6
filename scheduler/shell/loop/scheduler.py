"""Run the scheduling loop: one pod after another, bindings beside it.

Everything that decides happens between two awaits, so that nothing changes meanwhile; only calls to the API
server await.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel

from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.group import group_to_try
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION, Failed, Reason, Scheduled
from nominee.scheduler.attempts.resize import is_resize
from nominee.scheduler.attempts.states import Effect, Event, Progress
from nominee.scheduler.extenders import search
from nominee.scheduler.extenders.wire import ExtenderError
from nominee.scheduler.features import SchedulerFeatures
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.queue.scheduling_queue import (
    FLUSH_BACKOFF_PERIOD_SECONDS,
    FLUSH_UNSCHEDULABLE_PERIOD_SECONDS,
)
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.attempt.recorder import ProfileRecorder
from nominee.scheduler.shell.calls import failpoints as steps
from nominee.scheduler.shell.loop.binding import BindingCycles
from nominee.scheduler.shell.loop.deps import SchedulerDeps
from nominee.scheduler.shell.loop.evictions import Evictions
from nominee.scheduler.shell.loop.failure_handler import FailureHandler
from nominee.scheduler.shell.loop.group_scheduling import GroupScheduling

TASKS_MAX: Final = 20_000  # binding cycles that are not over; beyond it the loop waits
TURN_SECONDS: Final = 0.0005
TURNS_MAX: Final = 64
_log = logs.get()


def turns_after(seconds: float) -> int:
    """Return how many turns of the event loop bindings, evictions and watches get after an attempt.

    A message of the watch takes several turns to arrive. With one turn an attempt, a wave of long attempts
    (preemption) would work on an ever older state.
    """
    return min(1 + int(seconds / TURN_SECONDS), TURNS_MAX)


class Scheduler:
    """Runs the loop. `wiring` builds it and feeds cache and queue."""

    def __init__(self, features: SchedulerFeatures, deps: SchedulerDeps) -> None:
        self.deps = deps
        self.features = features
        self._next_start = 0  # row at which the next search for feasible nodes begins
        self._tasks = anyio.Semaphore(TASKS_MAX, fast_acquire=True)
        self.failures = FailureHandler(features, deps)
        self.bindings = BindingCycles(features, deps, self.failures)
        self._evictions = Evictions(deps)
        self._group_scheduling = GroupScheduling(features, deps)

    def tasks(self) -> Mapping[str, int]:
        """Return the number of tasks beside the loop, by operation."""
        return {"binding": len(self.bindings.binding), "DefaultPreemption": self._evictions.running}

    async def run(self) -> None:
        """Schedule pods until cancelled."""
        try:
            await self._run()
        finally:
            if self.deps.extenders is not None:
                with anyio.CancelScope(shield=True):
                    await self.deps.extenders.close()

    async def _run(self) -> None:
        clock = self.deps.clock
        async with anyio.create_task_group() as group:
            group.start_soon(self._flush)
            group.start_soon(self.deps.dispatcher.run)
            while True:
                info = self.deps.queue.pop()
                if info is None:
                    await self.deps.queue_signal.wait()
                    continue
                started = clock.monotonic()
                await self.schedule(info, group)
                for _ in range(turns_after(clock.monotonic() - started)):
                    await anyio.lowlevel.checkpoint()

    async def _flush(self) -> None:
        """Flush backoff at the beginning of every second, and the unschedulable pods every 30 s."""
        queue, queue_now = self.deps.queue, self.deps.queue_now
        last_unschedulable = queue_now()
        while True:
            now = queue_now()
            period = FLUSH_BACKOFF_PERIOD_SECONDS
            await self.deps.clock.sleep((math.floor(now / period) + 1) * period - now)
            now = queue_now()
            queue.flush_backoff(now)
            if now - last_unschedulable >= FLUSH_UNSCHEDULABLE_PERIOD_SECONDS:
                last_unschedulable = now
                queue.flush_unschedulable(now)

    async def schedule(self, info: QueuedPodInfo, group: anyio.abc.TaskGroup) -> None:
        """Decide on one popped pod now; bindings, evictions and writes are tasks of the group."""
        attempt = self._attempt_at(info)
        if attempt is None:
            return
        if self.features.pod_groups and group_to_try(attempt.pod.pod) is not None:
            await self._schedule_group(attempt, group)
            return
        try:
            await steps.CYCLE_BEFORE.hit(pod=attempt.pod.key)
        except (StatusError, FailpointError) as error:
            self._failed(attempt, Failed(Reason.SCHEDULER_ERROR, str(error), CLEAR_NOMINATION), group)
            return
        if is_resize(attempt.pod.pod) and not self.deps.resizes.is_queued(attempt.pod.uid):
            self.deps.queue.done(attempt.pod.uid)
            return
        outcome = await self._decide(attempt)
        self.deps.metrics.algorithm_seconds.observe(self.deps.clock.monotonic() - attempt.started)
        self.deps.attempts.decided(attempt.pod, outcome)
        if decision_log.is_detailed():
            decision_log.log_answers(attempt.pod, attempt.state, outcome)
        if isinstance(outcome, Scheduled):
            self._next_start = outcome.next_start
            self.bindings.begin(attempt, outcome)
        await self._carry_out(attempt, outcome, group)

    def _attempt_at(self, info: QueuedPodInfo) -> Attempt | None:
        """Return a new attempt; None for a pod that is not to be tried, which is not in flight any more."""
        pod = info.pod_info
        profile = self.deps.profiles.get(pod.pod.spec.schedulerName)
        if profile is None or self._is_to_be_skipped(info, profile.recorder):
            self.deps.queue.done(pod.uid)
            return None
        started = self.deps.clock.monotonic()
        info.last_attempt_start = self.deps.queue_now.at(started)
        return Attempt(
            profile.framework,
            profile.recorder,
            info,
            pod,
            CycleState(profile.hooks.of(info.scheduling_cycle)),
            started,
            Progress(str(pod.key), started),
        )

    def _is_to_be_skipped(self, info: QueuedPodInfo, recorder: ProfileRecorder) -> bool:
        pod = info.pod_info
        if pod.is_terminating:
            recorder.failed_scheduling(pod.pod, f"skip schedule deleting pod: {pod.key}")
            return True
        # An update that came between pop and assume puts a pod into the queue a second time.
        return self.deps.cache.is_assumed(pod.uid)

    async def _decide(self, attempt: Attempt) -> Scheduled | Failed:
        """Run the scheduling cycle. Without extenders nothing is awaited in it."""
        deps, extenders = self.deps, self.deps.extenders
        if is_resize(attempt.pod.pod):
            return deps.resizes.run(attempt.framework, deps.cache, attempt.state, attempt.pod)
        if extenders is None:
            return cycle.run(
                attempt.framework,
                deps.cache,
                attempt.state,
                attempt.pod,
                start=self._next_start,
                percentage=deps.percentage_of_nodes_to_score,
                rng=deps.rng,
            )
        asking = search.run(
            attempt.framework,
            deps.cache,
            attempt.state,
            attempt.pod,
            extenders.extenders,
            start=self._next_start,
            percentage=deps.percentage_of_nodes_to_score,
            rng=deps.rng,
        )
        return await extenders.converse(asking)

    async def _schedule_group(self, first: Attempt, group: anyio.abc.TaskGroup) -> None:
        """Try a pod together with the other pods of its group (KEP-4671). Extenders are not asked."""
        decided = await self._group_scheduling.decide(
            first, self._attempt_at, self.bindings.begin, start=self._next_start
        )
        self._next_start = decided.next_start
        for attempt, outcome in decided.outcomes:
            await self._carry_out(attempt, outcome, group)
        self._group_scheduling.write_condition(first, decided, group)

    async def _carry_out(
        self, attempt: Attempt, outcome: Scheduled | Failed, group: anyio.abc.TaskGroup
    ) -> None:
        """Bind the pod in a task, or make room for it if PostFilter asks for that and requeue it."""
        if isinstance(outcome, Scheduled):
            await self._tasks.acquire()
            group.start_soon(self._bind, attempt)
            return
        if outcome.reason is Reason.SCHEDULER_ERROR:
            expected = isinstance(outcome.error, StatusError | ExtenderError)
            _log.error(
                "Error scheduling pod; retrying", pod=attempt.pod.key, step="cycle", error=outcome.message,
                exc_info=None if expected else outcome.error,
            )  # fmt: skip
        if outcome.post_filter is not None:
            outcome = await self._evictions.make_room(attempt, outcome, outcome.post_filter, group)
        # What has failed cannot fail again; here the attempt may take its time, or the process may end.
        with suppress(StatusError, FailpointError):
            await steps.CYCLE_AFTER.hit(pod=attempt.pod.key)
        self._failed(attempt, outcome, group)

    async def _bind(self, attempt: Attempt) -> None:
        try:
            await self.bindings.run(attempt)
            if self.deps.results is not None:
                await self.deps.results.write(attempt)
        finally:
            self._tasks.release()

    def _failed(self, attempt: Attempt, failed: Failed, group: anyio.abc.TaskGroup) -> None:
        effects = attempt.progress.apply(Event.FAILED, self.deps.clock.monotonic())
        assert effects == (Effect.REQUEUE,), f"{attempt.pod.key} has reserved nothing yet"
        self.failures.handle(attempt, failed)
        if self.deps.results is not None:
            group.start_soon(self.deps.results.write, attempt)
