"""The scheduling loop: one pod after another, bindings beside it.

Everything that decides happens between two awaits, so that nothing changes meanwhile; only what talks to
the API server awaits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel

from machinery import kinds, logs
from machinery.clock import Clock
from machinery.errors import StatusError
from machinery.failpoints import FailpointError
from machinery.objects import ObjectKey, key_of
from machinery.pb import core
from scheduler import cycle, group_cycle
from scheduler.cycle import CLEAR_NOMINATION, Failed, Reason, Scheduled
from scheduler.extenders import search
from scheduler.extenders.client import ExtenderClient
from scheduler.extenders.wire import ExtenderError
from scheduler.framework.cache import Cache
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import PostFilterResult, Status, is_success
from scheduler.framework.runtime import Framework
from scheduler.framework.scheduling_groups import SchedulingGroups, group_of
from scheduler.framework.types import QueuedPodInfo
from scheduler.placements import Placement, PlacementError, topology_key
from scheduler.placements import placements as placements_of
from scheduler.queue.scheduling_queue import (
    FLUSH_BACKOFF_PERIOD_SECONDS,
    FLUSH_UNSCHEDULABLE_PERIOD_SECONDS,
    PrioritySchedulingQueue,
)
from scheduler.shell import steps
from scheduler.shell.attempt import Attempt, AttemptHooks
from scheduler.shell.attempt_log import AttemptLog
from scheduler.shell.binding import BindingCycles
from scheduler.shell.failure_handler import FailureHandler
from scheduler.shell.group_status import GroupConditions
from scheduler.shell.metrics import Metrics
from scheduler.shell.recorder import ProfileRecorder
from scheduler.shell.simulator_annotations import ResultWriter
from scheduler.shell.status_writer import StatusWriter
from scheduler.shell.waiting_pods import WaitingPods
from scheduler.way import Way

CALLS_MAX: Final = 64  # to the API server at the same time, of each sort: bindings and status writes
TASKS_MAX: Final = 20_000  # binding cycles that are not over; beyond it the loop waits
TURN_SECONDS: Final = 0.0005
TURNS_MAX: Final = 64
_log = logs.get()


def turns_after(seconds: float) -> int:
    """How many turns bindings, evictions and watches get after an attempt that took so long.

    What the watch tells takes several turns of the event loop to arrive. With one turn an attempt, a wave of
    long attempts (preemption) would work ever longer on an ever older state.
    """
    return min(1 + int(seconds / TURN_SECONDS), TURNS_MAX)


def _scheduler_names_differ(attempts: Sequence[Attempt]) -> str:
    """What is wrong with a group whose pods name several schedulers; "" if nothing is."""
    names = [attempt.pod.pod.spec.schedulerName for attempt in attempts]
    for name in names:
        if name != names[0]:
            text = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
            return f'{text}"{names[0]}" and "{name}"'
    return ""


class QueueClock:
    """Seconds since the epoch that never go back: wall time at the start, monotonic from then on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()

    def __call__(self) -> float:
        return self._clock.monotonic() + self._offset


class Scheduler:
    """Owns the loop. Made by `run.py`, which also feeds cache and queue."""

    def __init__(
        self,
        *,
        frameworks: Mapping[str, Framework],
        recorders: Mapping[str, ProfileRecorder],
        hooks: Mapping[str, AttemptHooks],
        queue: PrioritySchedulingQueue,
        cache: Cache,
        waiting: WaitingPods,
        writer: StatusWriter,
        metrics: Metrics,
        clock: Clock,
        queue_now: Callable[[], float],
        rng: random.Random,
        cached: Callable[[ObjectKey], core.Pod | None],
        percentage_of_nodes_to_score: int | None,
        nominates: bool,
        stops_pre_binding: bool,
        keeps_nominations: bool,
        binding_slots: anyio.Semaphore,
        groups: SchedulingGroups,
        groups_pods: bool,
        extenders: ExtenderClient | None = None,
        results: ResultWriter | None = None,
    ) -> None:
        self.queue = queue
        self._groups = groups
        self._groups_pods = groups_pods
        self._group_conditions = GroupConditions(clock)
        self._results = results
        self.cache = cache
        self.waiting = waiting
        self.frameworks = dict(frameworks)
        self._recorders = dict(recorders)
        self._hooks = dict(hooks)
        self._metrics = metrics
        self._clock = clock
        self._now = queue_now
        self._rng = rng
        self._percentage = percentage_of_nodes_to_score
        self._start_index = 0
        self._evicting = 0
        self._extenders = extenders
        self._ready = anyio.Event()
        self._tasks = anyio.Semaphore(TASKS_MAX, fast_acquire=True)
        self.attempts = AttemptLog(queue_now)
        self.failures = FailureHandler(
            queue,
            writer,
            metrics,
            self.attempts,
            clock,
            cached=cached,
            queue_now=queue_now,
            keeps_nominations=keeps_nominations,
        )
        self.bindings = BindingCycles(
            queue,
            cache,
            waiting,
            writer,
            self.failures,
            metrics,
            clock,
            binding_slots,
            nominates=nominates,
            stops_pre_binding=stops_pre_binding,
            queue_now=queue_now,
            extenders=extenders,
        )

    def tasks(self) -> Mapping[str, int]:
        """What runs beside the loop, by operation; for the metric."""
        return {"binding": len(self.bindings.binding), "DefaultPreemption": self._evicting}

    def wake(self) -> None:
        """The queue may have something."""
        self._ready.set()

    async def run(self) -> None:
        """Schedules until cancelled."""
        try:
            await self._run()
        finally:
            if self._extenders is not None:
                self._extenders.close()

    async def _run(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._flush)
            while True:
                info = self.queue.pop()
                if info is None:
                    self._ready = anyio.Event()
                    await self._ready.wait()
                    continue
                started = self._clock.monotonic()
                await self.schedule(info, group)
                for _ in range(turns_after(self._clock.monotonic() - started)):
                    await anyio.lowlevel.checkpoint()

    async def _flush(self) -> None:
        """At the beginning of every second: pods whose backoff is over; every 30 s: forgotten ones."""
        last_unschedulable = self._now()
        while True:
            now = self._now()
            period = FLUSH_BACKOFF_PERIOD_SECONDS
            await self._clock.sleep((math.floor(now / period) + 1) * period - now)
            now = self._now()
            self.queue.flush_backoff(now)
            if now - last_unschedulable >= FLUSH_UNSCHEDULABLE_PERIOD_SECONDS:
                last_unschedulable = now
                self.queue.flush_unschedulable(now)

    async def schedule(self, info: QueuedPodInfo, group: anyio.abc.TaskGroup) -> None:
        """One popped pod: a decision now, its consequences as tasks of the group."""
        attempt = self._attempt_at(info)
        if attempt is None:
            return
        if self._groups_pods and group_of(attempt.pod.pod) is not None:
            await self._schedule_together(attempt, group)
            return
        try:
            await steps.CYCLE_BEFORE.hit(pod=attempt.pod.key)
        except (StatusError, FailpointError) as error:
            self._failed(attempt, Failed(Reason.SCHEDULER_ERROR, str(error), CLEAR_NOMINATION), group)
            return
        outcome = await self._decide(attempt)
        self._metrics.algorithm_seconds.observe(self._clock.monotonic() - attempt.started)
        self.attempts.decided(attempt.pod, outcome)
        if isinstance(outcome, Failed):
            await self._go_back(attempt, outcome, group)
            return
        self._start_index = outcome.next_start
        self.bindings.begin(attempt, outcome)
        await self._tasks.acquire()
        group.start_soon(self._bind, attempt, group)

    def _attempt_at(self, info: QueuedPodInfo) -> Attempt | None:
        """None for a pod that is not to be tried; its flight is over then."""
        pod = info.pod_info
        name = pod.pod.spec.schedulerName
        framework, recorder = self.frameworks.get(name), self._recorders.get(name)
        if framework is None or recorder is None or self._is_to_be_skipped(info, recorder):
            self.queue.done(pod.uid)
            return None
        state = CycleState(self._hooks[name].of(info.scheduling_cycle))
        started = self._clock.monotonic()
        return Attempt(framework, recorder, info, pod, state, started, Way(str(pod.key), started))

    async def _go_back(self, attempt: Attempt, outcome: Failed, group: anyio.abc.TaskGroup) -> None:
        """The pod got no node."""
        if outcome.reason is Reason.SCHEDULER_ERROR:
            foreseen = isinstance(outcome.error, StatusError | ExtenderError)
            _log.error(
                "Error scheduling pod; retrying", pod=attempt.pod.key, step="cycle", error=outcome.message,
                exc_info=None if foreseen else outcome.error,
            )  # fmt: skip
        if outcome.post_filter is not None:
            outcome = await self._make_room(attempt, outcome, outcome.post_filter, group)
        self._failed(attempt, outcome, group)

    async def _schedule_together(self, first: Attempt, group: anyio.abc.TaskGroup) -> None:
        """A pod and everybody of its group that could be tried (KEP-4671). Extenders are not asked."""
        key = group_of(first.pod.pod)
        assert key is not None
        attempts = [first]
        for other in self._groups.unscheduled(key):
            info = None if other.metadata.uid == first.pod.uid else self.queue.pop_specific(key_of(other))
            attempt = None if info is None else self._attempt_at(info)
            if attempt is not None:
                attempts.append(attempt)
        attempts.sort(key=lambda a: (-a.pod.priority, a.info.initial_attempt_timestamp or 0.0))
        error = _scheduler_names_differ(attempts)
        try:
            await steps.CYCLE_BEFORE.hit(pod=first.pod.key)
        except (StatusError, FailpointError) as failure:
            error = str(failure)
        placements = None
        if not error:
            try:
                placements = self._placements(first.framework, key)
            except PlacementError as failure:
                error = str(failure)
        if error:
            for attempt in attempts:
                self._failed(attempt, Failed(Reason.SCHEDULER_ERROR, error, CLEAR_NOMINATION), group)
            return

        def placed(index: int, state: CycleState, outcome: Scheduled) -> None:
            attempts[index].state = state
            self.bindings.begin(attempts[index], outcome)

        with self._groups.trying({attempt.pod.uid for attempt in attempts}):
            verdict = group_cycle.run(
                first.framework,
                self.cache,
                [group_cycle.Member(attempt.pod, attempt.state) for attempt in attempts],
                start=self._start_index,
                percentage=self._percentage,
                rng=self._rng,
                placed=placed,
                placements=placements,
            )
        self._start_index = verdict.next_start
        seconds = self._clock.monotonic() - first.started
        self._metrics.group_decided(verdict.result, first.framework.profile_name, seconds)
        for attempt, outcome in zip(attempts, verdict.outcomes, strict=True):
            self.attempts.decided(attempt.pod, outcome)
        for attempt, outcome in zip(attempts, verdict.outcomes, strict=True):
            if isinstance(outcome, Failed):
                await self._go_back(attempt, outcome, group)
            else:
                await self._tasks.acquire()
                group.start_soon(self._bind, attempt, group)
        self._group_conditions.decided(first.framework, key, verdict, group)

    def _placements(self, framework: Framework, key: ObjectKey) -> list[Placement] | None:
        """Where the group may be tried; None without TopologyAwareWorkloadScheduling. PlacementError."""
        if not framework.gates.enabled("TopologyAwareWorkloadScheduling"):
            return None
        self.cache.update_snapshot(framework.snapshot)
        group = framework.lister(kinds.POD_GROUP).get(key.name, key.namespace)
        members = self._groups.members(key).items()
        nodes = (pod.spec.nodeName or self.cache.node_of(uid) for uid, pod in members)
        return placements_of(topology_key(group), framework.snapshot, {node for node in nodes if node})

    async def _decide(self, attempt: Attempt) -> Scheduled | Failed:
        """The cycle. Without extenders nothing is awaited in it."""
        framework, state, pod = attempt.framework, attempt.state, attempt.pod
        if self._extenders is None:
            return cycle.run(
                framework,
                self.cache,
                state,
                pod,
                start=self._start_index,
                percentage=self._percentage,
                rng=self._rng,
            )
        asking = search.run(
            framework,
            self.cache,
            state,
            pod,
            self._extenders.extenders,
            start=self._start_index,
            percentage=self._percentage,
            rng=self._rng,
        )
        return await self._extenders.converse(asking)

    def _is_to_be_skipped(self, info: QueuedPodInfo, recorder: ProfileRecorder) -> bool:
        pod = info.pod_info
        if pod.is_terminating:
            recorder.failed_scheduling(pod.pod, f"skip schedule deleting pod: {pod.key}")
            return True
        # An update that came between pop and assume puts a pod into the queue a second time.
        return self.cache.is_assumed(pod.uid)

    async def _bind(self, attempt: Attempt, group: anyio.abc.TaskGroup) -> None:
        try:
            await self.bindings.run(attempt, group)
            if self._results is not None:
                await self._results.write(attempt)
        finally:
            self._tasks.release()

    def _failed(self, attempt: Attempt, failed: Failed, group: anyio.abc.TaskGroup) -> None:
        self.failures.handle(attempt, failed, group)
        if self._results is not None:
            group.start_soon(self._results.write, attempt)

    async def _make_room(
        self, attempt: Attempt, failed: Failed, result: PostFilterResult, group: anyio.abc.TaskGroup
    ) -> Failed:
        """Starts the evictions that PostFilter wants; in the background (KEP-4832) or before going on."""
        if result.candidate is not None:
            self._metrics.preemption_victims.observe(len(result.candidate.victims))
        if result.follow_up is None:
            return failed
        if result.background:
            if result.begin is not None:
                result.begin()
            group.start_soon(self._evict, attempt, result)
            return failed
        status = await self._evict(attempt, result)
        if status is None or status.is_success:
            return failed
        return cycle.eviction_failed(failed, status)

    def _release_preemptor(self, attempt: Attempt, result: PostFilterResult) -> None:
        """Victims that were only sent back (Permit, PreBind) may have gone before the eviction was over.

        Their event found the preemptor held back by it, and no other will come.
        """
        if result.candidate is None or all(victim.pod.spec.nodeName for victim in result.candidate.victims):
            return
        info = self.queue.get(attempt.pod.key)
        if info is not None and info.gated and not info.pod.spec.schedulingGates:
            self.queue.activate([info.pod], self._now())

    async def _evict(self, attempt: Attempt, result: PostFilterResult) -> Status | None:
        assert result.follow_up is not None
        began = self._clock.monotonic()
        self._evicting += 1
        try:
            status = await result.follow_up()
        except (StatusError, FailpointError) as error:
            status = Status.as_error(error)
        finally:
            self._evicting -= 1
        if result.background:
            word = "success" if is_success(status) else "error"
            self._metrics.preemption_tasks.labels(word).inc()
            self._metrics.preemption_task_seconds.labels(word).observe(self._clock.monotonic() - began)
        self._release_preemptor(attempt, result)
        if status is not None and not status.is_success:
            _log.warning("Preemption failed", pod=attempt.pod.key, step="preempt", error=status.message())
        return status
