"""The binding cycle: a pod that has a node in our mind gets it in the API server's.

    nominate (only if the wait may be long) -> wait on Permit -> PreBind -> Bind -> PostBind

Any failure undoes the reservation and sends the pod back. Source: kube-scheduler 1.36, bindingCycle and
handleBindingCycleError; KEP-5278, "The scheduler puts NominatedNodeName".
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import anyio
import anyio.abc

from machinery import kinds, logs
from machinery.client import retry_unavailable
from machinery.clock import Clock
from machinery.errors import StatusError, is_retryable
from machinery.failpoints import FailpointError
from scheduler.cycle import Failed, Scheduled, failed_by
from scheduler.event_handlers import ASSIGNED_POD_DELETE, assigned_copy
from scheduler.extenders.client import ExtenderClient
from scheduler.extenders.wire import ExtenderError
from scheduler.framework.cache import Cache
from scheduler.framework.interface import Code, NominatingInfo, NominatingMode, Status, is_success
from scheduler.framework.types import PodInfo
from scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from scheduler.shell import binding_plugins, steps
from scheduler.shell.attempt import Attempt
from scheduler.shell.failure_handler import FailureHandler
from scheduler.shell.metrics import Metrics
from scheduler.shell.status_writer import StatusWriter
from scheduler.shell.waiting_pods import PreBinding, WaitingPod, WaitingPods
from scheduler.way import Step

_log = logs.get()


class BindingCycles:
    """Runs binding cycles as tasks; knows which pods are in one.

    `slots` bounds the calls to the API server that bind; `nominates` is the gate
    NominatedNodeNameForExpectation; `stops_pre_binding`: a preemptor may send a pod back from PreBind (1.36).
    """

    def __init__(
        self,
        queue: PrioritySchedulingQueue,
        cache: Cache,
        waiting: WaitingPods,
        writer: StatusWriter,
        failures: FailureHandler,
        metrics: Metrics,
        clock: Clock,
        slots: anyio.Semaphore,
        *,
        nominates: bool,
        stops_pre_binding: bool,
        queue_now: Callable[[], float],
        extenders: ExtenderClient | None = None,
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._waiting = waiting
        self._writer = writer
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        self._slots = slots
        self._nominates = nominates
        self._queue_now = queue_now
        self._stops_pre_binding = stops_pre_binding
        self._extenders = extenders
        self._pre_binding: dict[str, PreBinding] = {}
        self.binding: dict[str, Attempt] = {}  # by uid

    def stoppable(self, uid: str) -> WaitingPod | PreBinding | None:
        """A pod that waits on Permit or is in PreBind, which can be sent back without deleting it."""
        return self._waiting.get(uid) or self._pre_binding.get(uid)

    def begin(self, attempt: Attempt, scheduled: Scheduled) -> None:
        """The pod was given a node; from now on other pods' Permit can see it waiting. `run` is to follow."""
        attempt.scheduled = scheduled
        attempt.way.to(Step.RESERVED, self._clock.monotonic())
        self.binding[attempt.pod.uid] = attempt
        if scheduled.waits:
            preemptors = frozenset(plugin.name for plugin in attempt.framework.post_filter_plugins)
            attempt.waiting = self._waiting.add(
                attempt.pod,
                attempt.node_name,
                scheduled.waits,
                preemptors if self._stops_pre_binding else frozenset(),
            )

    async def run(self, attempt: Attempt, group: anyio.abc.TaskGroup) -> None:
        """The whole cycle; what fails is handled, so that nothing is raised but cancellation."""
        uid = attempt.pod.uid
        try:
            status = await self._cycle(attempt, attempt.waiting)
        except (StatusError, FailpointError) as error:
            status = Status.as_error(error)
        except Exception as error:  # noqa: BLE001  # plugins come from outside; logged with its traceback
            _log.exception("Binding cycle broke", pod=attempt.pod.key, node=attempt.node_name, step="bind")
            status = Status.as_error(error)
        finally:
            self._waiting.remove(uid)
            self.binding.pop(uid, None)
        if status is None or status.is_success:
            return
        if attempt.way.step is Step.BOUND:
            # Nothing that happens to a bound pod here can unbind it.
            _log.warning("Failed after the binding", pod=attempt.pod.key, error=status.message())
            return
        await self.undo(attempt, status, group)

    async def _cycle(self, attempt: Attempt, waiting: WaitingPod | None) -> Status | None:
        framework, state, pod, node = attempt.framework, attempt.state, attempt.pod, attempt.node_name
        await steps.ASSUME_AFTER.hit(pod=pod.key, node=node)
        await self._writer.wait(pod.uid)
        has_work = bool(framework.pre_bind_plugins)
        if self._nominates:
            pre_flight = framework.run_pre_bind_pre_flights(state, pod, node)
            if pre_flight.code not in (Code.Success, Code.Skip):
                return pre_flight
            has_work = pre_flight.is_success
            if has_work or waiting is not None:
                await self._nominate(pod, node)
                self._step(attempt, Step.NOMINATED)
        if waiting is not None:
            self._step(attempt, Step.WAITING)
            await steps.PERMIT_WAIT_BEFORE.hit(pod=pod.key, node=node)
            began = self._clock.monotonic()
            status = await waiting.wait()
            result = "Success" if status is None else status.code.name
            self._metrics.permit_wait_seconds.labels(result).observe(self._clock.monotonic() - began)
            self._waiting.remove(pod.uid)
            if not is_success(status):
                return status
            await steps.PERMIT_WAIT_AFTER.hit(pod=pod.key, node=node)
        # A failure from here on is no rejection that an event could undo: events need not be kept any more.
        self._queue.done(pod.uid)
        if has_work:
            self._step(attempt, Step.PRE_BINDING)
            status = await self._pre_bind(attempt)
            if not is_success(status):
                return status
        self._step(attempt, Step.BINDING)
        status = await self._bind(attempt)
        if not is_success(status):
            return status
        await binding_plugins.run_post_bind_plugins(framework, state, pod, node)
        return None

    def _step(self, attempt: Attempt, step: Step) -> None:
        attempt.way.to(step, self._clock.monotonic())

    async def _nominate(self, pod: PodInfo, node: str) -> None:
        """Tells everybody where the pod is about to go. Not being able to does not stop the binding."""
        ticket = self._writer.ticket(pod.uid, NominatingInfo(NominatingMode.Override, node))
        try:
            await steps.NOMINATE_BEFORE.hit(pod=pod.key, node=node)
            await self._writer.write(ticket, pod.pod, None)
        except (StatusError, FailpointError) as error:
            _log.warning("Could not write a nomination", pod=pod.key, node=node, step="nominate", error=error)
        finally:
            self._writer.release(ticket)
        await steps.NOMINATE_AFTER.hit(pod=pod.key, node=node)

    async def _pre_bind(self, attempt: Attempt) -> Status | None:
        framework, pod, node = attempt.framework, attempt.pod, attempt.node_name
        await steps.PREBIND_BEFORE.hit(pod=pod.key, node=node)
        result: list[Status | None] = []
        stop = PreBinding(pod, node)
        if self._stops_pre_binding:
            self._pre_binding[pod.uid] = stop

        async def pre_bind() -> None:
            result.append(await binding_plugins.run_pre_bind_plugins(framework, attempt.state, pod, node))

        broken: StatusError | FailpointError | None = None
        try:
            with stop.scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(pre_bind)
                    try:
                        await steps.PREBIND_DURING.hit(pod=pod.key, node=node)
                    except (StatusError, FailpointError) as error:
                        broken = error
                        group.cancel_scope.cancel()
        finally:
            self._pre_binding.pop(pod.uid, None)
        if broken is not None:
            raise broken
        if stop.message:
            working = (p.name for p in framework.pre_bind_plugins)
            name = next((n for n in working if n not in attempt.state.skip_pre_bind_plugins), "")
            return Status(Code.Error, (f'running PreBind plugin "{name}": {stop.message}',), name)
        if is_success(result[0]):
            await steps.PREBIND_AFTER.hit(pod=pod.key, node=node)
        return result[0]

    async def _bind(self, attempt: Attempt) -> Status | None:
        framework, pod, node = attempt.framework, attempt.pod, attempt.node_name
        async with self._slots:
            await steps.BIND_BEFORE.hit(pod=pod.key, node=node)
            status = await self._ask_to_bind(attempt)
        if status is not None and await self._is_bound_after_all(attempt, status):
            status = None
        self._cache.finish_binding(pod)
        if status is not None and not status.is_success:
            if status.is_skip:
                return Status(Code.Error, ("no Bind plugin took the pod",))
            return status
        self._step(attempt, Step.BOUND)
        await steps.BIND_AFTER.hit(pod=pod.key, node=node)
        attempt.recorder.scheduled(pod.pod, pod.key, node)
        self._metrics.attempted(
            "scheduled", framework.profile_name, self._clock.monotonic() - attempt.started
        )
        first = attempt.info.initial_attempt_timestamp
        if attempt.info.was_flushed_from_unschedulable:
            self._metrics.scheduled_after_flush.inc()
        self._metrics.bound(attempt.info.attempts, self._queue_now() - (first or self._queue_now()))
        return None

    async def _ask_to_bind(self, attempt: Attempt) -> Status | None:
        """An extender that binds takes precedence over Bind plugins."""
        if self._extenders is not None:
            try:
                if await self._extenders.bind(attempt.pod, attempt.node_name):
                    return None
            except ExtenderError as error:
                return Status.as_error(error)
        return await binding_plugins.run_bind_plugins(
            attempt.framework, attempt.state, attempt.pod, attempt.node_name
        )

    async def _is_bound_after_all(self, attempt: Attempt, status: Status) -> bool:
        """Whether a binding that got no answer was done all the same: the server died, or took too long.

        Taking it for a failure would write PodScheduled=False to a bound pod.
        """
        if not is_retryable(status.error):
            return False
        pod = attempt.pod
        client = attempt.framework.client
        try:
            found = await retry_unavailable(
                lambda: client.get(kinds.POD, pod.name, pod.namespace), clock=self._clock
            )
        except StatusError:
            return False
        return found.metadata.uid == pod.uid and found.spec.nodeName == attempt.node_name

    async def undo(self, attempt: Attempt, status: Status, group: anyio.abc.TaskGroup) -> None:
        """Takes everything back, in upstream's order, and hands the pod to the failure handler."""
        pod, node, now = attempt.pod, attempt.node_name, self._queue_now()
        _log.warning(
            "Binding failed", pod=pod.key, node=node, step="binding", rejected=status.is_rejected,
            error=status.message(), story=attempt.way.story(),
        )  # fmt: skip
        with suppress(
            StatusError, FailpointError
        ):  # what is taken back cannot fail; it may stall, or be the end
            await steps.UNRESERVE_BEFORE.hit(pod=pod.key, node=node)
        attempt.framework.run_unreserve_plugins(attempt.state, pod, node)
        await binding_plugins.run_after_unreserve(attempt.framework, attempt.state, pod, node)
        forgotten = self._cache.is_assumed(pod.uid)
        if forgotten:
            self._cache.forget_pod(pod)
        freed = assigned_copy(pod.pod, node)
        if forgotten and not status.is_rejected:
            self._queue.move_all(ASSIGNED_POD_DELETE, freed, None, now)
        failed: Failed = failed_by(status)
        self._failures.handle(attempt, failed, group)
        if forgotten and status.is_rejected:
            # After the pod is back in the queue: its own going is no reason to try it again.
            uid = pod.uid
            self._queue.move_all(ASSIGNED_POD_DELETE, freed, None, now, lambda info: info.uid != uid)
