"""Run the binding cycle of a pod that was assumed on a node.

    nominate (only if the wait may be long) -> wait on Permit -> PreBind -> Bind -> PostBind

`nominee.scheduler.attempts.states` says which of these steps follow each other; `BindingCycles` performs
them. Any failure before Bind undoes the reservation and sends the pod back to the queue.
Source: kube-scheduler 1.36, bindingCycle and handleBindingCycleError; KEP-5278, "The scheduler puts
NominatedNodeName".
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

import anyio
import anyio.abc

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_retryable
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.scheduler.attempts.pod import Scheduled, failed_by
from nominee.scheduler.attempts.states import AttemptState, BindingPlan, Effect, Event, next_event
from nominee.scheduler.dispatch.api_calls import nomination
from nominee.scheduler.event_handlers import ASSIGNED_POD_DELETE, assigned_copy
from nominee.scheduler.extenders.wire import ExtenderError
from nominee.scheduler.features import SchedulerFeatures
from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.attempt.waiting_pods import PreBinding
from nominee.scheduler.shell.calls import failpoints as steps
from nominee.scheduler.shell.loop.binding_plugins import BindingPlugins
from nominee.scheduler.shell.loop.deps import SchedulerDeps
from nominee.scheduler.shell.loop.failure_handler import FailureHandler

CALLS_MAX: Final = 64  # bindings that ask the API server at the same time
_log = logs.get()


class BindingCycles:
    """Runs binding cycles as tasks and keeps the attempts that are in one."""

    def __init__(self, features: SchedulerFeatures, deps: SchedulerDeps, failures: FailureHandler) -> None:
        self._features = features
        self._deps = deps
        self._failures = failures
        self._plugins = BindingPlugins(deps.performer)
        self._slots = anyio.Semaphore(CALLS_MAX, fast_acquire=True)
        self.binding: dict[str, Attempt] = {}  # by uid
        self._performers: Final[Mapping[Effect, Callable[[Attempt], Awaitable[Status | None]]]] = {
            Effect.PRE_FLIGHT: self._pre_flight,
            Effect.NOMINATE: self._nominate,
            Effect.WAIT_ON_PERMIT: self._wait_on_permit,
            Effect.LEAVE_FLIGHT: self._leave_flight,
            Effect.PRE_BIND: self._pre_bind,
            Effect.BIND: self._bind,
            Effect.RECORD_BINDING: self._record_binding,
            Effect.POST_BIND: self._post_bind,
        }

    def begin(self, attempt: Attempt, scheduled: Scheduled) -> None:
        """Start the binding cycle of a pod that got a node; `run` is to follow.

        From now on the Permit plugins of other pods see it waiting.
        """
        deps = self._deps
        attempt.scheduled = scheduled
        attempt.effects = attempt.progress.apply(Event.SCHEDULED, deps.clock.monotonic())
        self.binding[attempt.pod.uid] = attempt
        if scheduled.waits:
            preemptors = frozenset(plugin.name for plugin in attempt.framework.post_filter_plugins)
            attempt.waiting = deps.waiting.add(
                attempt.pod,
                attempt.node_name,
                scheduled.waits,
                preemptors if self._features.stops_pre_binding else frozenset(),
            )
            if self._is_deleted(attempt.pod):
                attempt.waiting.reject("", "removed")

    def _is_deleted(self, pod: PodInfo) -> bool:
        """Return whether the pod was deleted since it was popped: no event will end its wait on Permit."""
        cached = self._deps.calls.cached(pod.key)
        return cached is None or cached.metadata.uid != pod.uid or is_terminating(cached)

    async def run(self, attempt: Attempt) -> None:
        """Run the whole cycle. Failures are handled, so that only cancellation is raised."""
        uid = attempt.pod.uid
        try:
            status = await self._drive(attempt)
        except (StatusError, FailpointError) as error:
            status = Status.as_error(error)
        except Exception as error:  # noqa: BLE001  # plugins come from outside; logged with its traceback
            _log.exception("Binding cycle failed", pod=attempt.pod.key, node=attempt.node_name, step="bind")
            status = Status.as_error(error)
        finally:
            self._deps.waiting.remove(uid)
            self.binding.pop(uid, None)
        if status is None or status.is_success:
            return
        if attempt.progress.state is AttemptState.BOUND:
            # Nothing that happens to a bound pod here can unbind it.
            _log.warning("Failed after the binding", pod=attempt.pod.key, error=status.message())
            return
        await self.undo(attempt, status)

    async def _drive(self, attempt: Attempt) -> Status | None:
        """Perform effects and apply events until the pod is bound; return the first failure."""
        while True:
            for effect in attempt.effects:
                status = await self._performers[effect](attempt)
                if status is not None and not status.is_success:
                    return status
            if attempt.progress.state is AttemptState.BOUND:
                return None
            assert attempt.plan is not None, "PreBindPreFlight makes the plan"
            event = next_event(attempt.progress.state, attempt.plan)
            attempt.effects = attempt.progress.apply(event, self._deps.clock.monotonic())

    # The effects, in the order of a cycle

    async def _pre_flight(self, attempt: Attempt) -> Status | None:
        framework, pod, node = attempt.framework, attempt.pod, attempt.node_name
        await steps.ASSUME_AFTER.hit(pod=pod.key, node=node)
        await self._deps.dispatcher.wait(pod.uid)
        has_work = bool(framework.pre_bind_plugins)
        if self._features.nominates_before_binding:
            status = framework.run_pre_bind_pre_flights(attempt.state, pod, node)
            if status.code not in (Code.Success, Code.Skip):
                return status
            has_work = status.is_success
        attempt.plan = BindingPlan(
            nominates=self._features.nominates_before_binding,
            waits=attempt.waiting is not None,
            has_work=has_work,
        )
        return None

    async def _nominate(self, attempt: Attempt) -> Status | None:
        """Write the node to nominatedNodeName. A failure to write it does not stop the binding."""
        pod, node = attempt.pod, attempt.node_name
        try:
            await steps.NOMINATE_BEFORE.hit(pod=pod.key, node=node)
        except (StatusError, FailpointError) as error:
            _log.warning("Could not write a nomination", pod=pod.key, node=node, step="nominate", error=error)
        else:
            self._deps.calls.decide(nomination(pod.pod, node))
            await self._deps.dispatcher.wait(pod.uid)
        await steps.NOMINATE_AFTER.hit(pod=pod.key, node=node)
        return None

    async def _wait_on_permit(self, attempt: Attempt) -> Status | None:
        deps, pod, node = self._deps, attempt.pod, attempt.node_name
        assert attempt.waiting is not None
        await steps.PERMIT_WAIT_BEFORE.hit(pod=pod.key, node=node)
        began = deps.clock.monotonic()
        status = await attempt.waiting.wait()
        result = "Success" if status is None else status.code.name
        deps.metrics.permit_wait_seconds.labels(result).observe(deps.clock.monotonic() - began)
        deps.waiting.remove(pod.uid)
        if is_success(status):
            await steps.PERMIT_WAIT_AFTER.hit(pod=pod.key, node=node)
        return status

    async def _leave_flight(self, attempt: Attempt) -> Status | None:
        self._deps.queue.done(attempt.pod.uid)
        return None

    async def _pre_bind(self, attempt: Attempt) -> Status | None:
        framework, pod, node = attempt.framework, attempt.pod, attempt.node_name
        await steps.PREBIND_BEFORE.hit(pod=pod.key, node=node)
        stop = PreBinding(pod, node)
        stoppable = self._features.stops_pre_binding
        with self._deps.waiting.pre_binding(stop) if stoppable else contextlib.nullcontext():
            status = await self._pre_bind_until_stopped(attempt, stop)
        if stop.message:
            working = (p.name for p in framework.pre_bind_plugins)
            name = next((n for n in working if n not in attempt.state.skip_pre_bind_plugins), "")
            return Status(Code.Error, (f'running PreBind plugin "{name}": {stop.message}',), name)
        if is_success(status):
            await steps.PREBIND_AFTER.hit(pod=pod.key, node=node)
        return status

    async def _pre_bind_until_stopped(self, attempt: Attempt, stop: PreBinding) -> Status | None:
        framework, pod, node = attempt.framework, attempt.pod, attempt.node_name
        result: list[Status | None] = []

        async def pre_bind() -> None:
            result.append(await self._plugins.pre_bind(framework, attempt.state, pod, node))

        broken: StatusError | FailpointError | None = None
        with stop.scope:
            async with anyio.create_task_group() as group:
                group.start_soon(pre_bind)
                try:
                    await steps.PREBIND_DURING.hit(pod=pod.key, node=node)
                except (StatusError, FailpointError) as error:
                    broken = error
                    group.cancel_scope.cancel()
        if broken is not None:
            raise broken
        return result[0] if result else None

    async def _bind(self, attempt: Attempt) -> Status | None:
        async with self._slots:
            await steps.BIND_BEFORE.hit(pod=attempt.pod.key, node=attempt.node_name)
            status = await self._run_bind(attempt)
        if status is not None and await self._is_bound_after_all(attempt, status):
            status = None
        if status is not None and status.is_skip:
            return Status(Code.Error, ("no Bind plugin took the pod",))
        return status

    async def _run_bind(self, attempt: Attempt) -> Status | None:
        """Let the extender that binds do it, else the Bind plugins."""
        if self._deps.extenders is not None:
            try:
                if await self._deps.extenders.bind(attempt.pod, attempt.node_name):
                    return None
            except ExtenderError as error:
                return Status.as_error(error)
        return await self._plugins.bind(attempt.framework, attempt.state, attempt.pod, attempt.node_name)

    async def _is_bound_after_all(self, attempt: Attempt, status: Status) -> bool:
        """Return whether a binding that got no answer was done all the same.

        The API server died, or took too long. Taking it for a failure would write PodScheduled=False to a
        bound pod.
        """
        if not is_retryable(status.error):
            return False
        pod = attempt.pod
        client = self._deps.client
        try:
            found = await retry_unavailable(
                lambda: client.get(kinds.POD, pod.name, pod.namespace), clock=self._deps.clock
            )
        except StatusError:
            return False
        return found.metadata.uid == pod.uid and found.spec.nodeName == attempt.node_name

    async def _record_binding(self, attempt: Attempt) -> Status | None:
        deps, pod, node, info = self._deps, attempt.pod, attempt.node_name, attempt.info
        await steps.BIND_AFTER.hit(pod=pod.key, node=node)
        attempt.recorder.scheduled(pod.pod, pod.key, node)
        seconds = deps.clock.monotonic() - attempt.started
        deps.metrics.attempted("scheduled", attempt.framework.profile_name, seconds)
        decision_log.log_bound(attempt, seconds)
        if info.was_flushed_from_unschedulable:
            deps.metrics.scheduled_after_flush.inc()
        now = deps.queue_now()
        deps.metrics.bound(info.attempts, now - (info.initial_attempt_timestamp or now))
        return None

    async def _post_bind(self, attempt: Attempt) -> Status | None:
        await self._plugins.post_bind(attempt.framework, attempt.state, attempt.pod, attempt.node_name)
        return None

    # After a failure

    async def undo(self, attempt: Attempt, status: Status) -> None:
        """Undo the reservation and hand the pod to the failure handler, in upstream's order."""
        deps, now = self._deps, self._deps.queue_now()
        _log.warning(
            "Binding failed", pod=attempt.pod.key, node=attempt.node_name, step="binding",
            rejected=status.is_rejected, error=status.message(), log=attempt.progress.log(),
        )  # fmt: skip
        is_free = False
        event = Event.REJECTED if status.is_rejected else Event.FAILED
        for effect in attempt.progress.apply(event, deps.clock.monotonic()):
            match effect:
                case Effect.UNRESERVE:
                    is_free = await self._unreserve(attempt)
                case Effect.ANNOUNCE_ROOM if is_free:
                    self._announce_room(attempt, now)
                case Effect.REQUEUE:
                    self._failures.handle(attempt, failed_by(status))

    async def _unreserve(self, attempt: Attempt) -> bool:
        """Run Unreserve and forget the pod; return whether it is on no node now: it may be bound after all.

        A pod that was deleted meanwhile is forgotten already, but what plugins reserved for it is free only
        now. So its room is announced again (kube-scheduler 1.36, handleAssumedPodDeletion).
        """
        deps, pod, node = self._deps, attempt.pod, attempt.node_name
        # Unreserve cannot fail; at this failpoint it may stall, or the process may end.
        with suppress(StatusError, FailpointError):
            await steps.UNRESERVE_BEFORE.hit(pod=pod.key, node=node)
        attempt.framework.run_unreserve_plugins(attempt.state, pod, node)
        await self._plugins.after_unreserve(attempt.framework, attempt.state, pod, node)
        if deps.cache.is_assumed(pod.uid):
            deps.cache.forget_pod(pod)
        return deps.cache.node_of(pod.uid) is None

    def _announce_room(self, attempt: Attempt, now: float) -> None:
        uid = attempt.pod.uid
        freed = assigned_copy(attempt.pod.pod, attempt.node_name)
        self._deps.queue.move_all(ASSIGNED_POD_DELETE, freed, None, now, lambda info: info.uid != uid)
