"""Perform the calls of the call queue (`nominee.scheduler.dispatch`): many pods at once.

The loop takes all calls that can begin, makes each in a task, and reports its outcome to the queue. What
follows for the scheduling queue and the nominator goes to `renominated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import anyio

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.scheduler.dispatch.api_calls import (
    Consequence,
    Lost,
    Outcome,
    PodStatusPatch,
    Purpose,
    Released,
    Renominated,
)
from nominee.scheduler.dispatch.call_queue import CallQueue
from nominee.scheduler.dispatch.states import Trigger
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.calls import failpoints as steps
from nominee.scheduler.shell.calls.signals import Signal

ATTEMPTS_MAX: Final = 9
AWAY: Final = frozenset((429, 503, 504))  # codes of an API server that cannot be reached, or is overloaded
_log = logs.get()


class APIDispatcher:
    """Runs the loop; `signal` wakes it. Calls that are decided before it runs wait.

    `renominated` is called for a pod whose nomination that counts has changed with an outcome, with the pod
    as it was taken to be, and as it is.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        calls: CallQueue,
        signal: Signal,
        renominated: Callable[[core.Pod, core.Pod], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._calls = calls
        self._signal = signal
        self._renominated = renominated
        self._released: dict[str, anyio.Event] = {}  # by uid, of pods whose calls are waited for

    async def run(self) -> None:
        """Perform calls until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                for call in self._calls.take():
                    group.start_soon(self._perform, call)
                await self._signal.wait()

    async def wait(self, uid: str) -> None:
        """Wait until the pod's decided calls are over, or the API server could not be reached for them."""
        if self._calls.hurry(uid):
            await self._released.setdefault(uid, anyio.Event()).wait()

    def bound(self, pod: core.Pod) -> None:
        """Note that a pod is bound."""
        self._calls.bound(pod.metadata.uid)

    def forget(self, pod: core.Pod) -> None:
        """Forget a pod that was deleted."""
        self._carry_out(self._calls.forget(pod.metadata.uid))

    def clear_nomination(self, pod: core.Pod) -> None:
        """Clear a pod's nomination: it does not count from now on, and is written later."""
        self._carry_out(self._calls.clear_nomination(pod))

    async def _perform(self, call: PodStatusPatch) -> None:
        outcome = Outcome(call, Trigger.FAILED)
        try:
            outcome = await self._make(call)
        finally:
            self._carry_out(self._calls.finish((outcome,)))

    async def _make(self, call: PodStatusPatch) -> Outcome:
        """Make a call and return its outcome; the failpoints are those of an attempt's result."""
        is_result = call.purpose is Purpose.STATUS
        try:
            if is_result:
                await steps.STATUS_BEFORE.hit(pod=str(call.key))
        except (StatusError, FailpointError) as error:
            return Outcome(call, Trigger.FAILED, error=error)
        try:
            written = await self._write(call)
        except StatusError as error:
            return Outcome(call, Trigger.UNREACHABLE if error.code in AWAY else Trigger.FAILED, error=error)
        except FailpointError as error:
            return Outcome(call, Trigger.FAILED, error=error)
        try:
            if is_result:
                await steps.STATUS_AFTER.hit(pod=str(call.key))
        except (StatusError, FailpointError) as error:
            _warn(call, error)
        return Outcome(call, Trigger.WRITTEN, written)

    async def _write(self, call: PodStatusPatch) -> core.Pod:
        """Write the difference and return the pod as it is then; all attempts have the time of the first."""
        now = self._clock.now()
        return await retry_unavailable(
            lambda: self._attempt(call, now), clock=self._clock, attempts_max=ATTEMPTS_MAX, seconds_first=0.02
        )

    async def _attempt(self, call: PodStatusPatch, now: float) -> core.Pod:
        """Write the difference to the newest known state; none if another pod has the name by now."""
        request = self._calls.request(call, now)
        if request.patch is None:
            return request.base
        written = await self._client.patch(
            kinds.POD, call.key.name, call.key.namespace, request.patch, subresource="status"
        )
        decision_log.log_nomination(call, request.base.status.nominatedNodeName)
        return written

    def _carry_out(self, consequences: Iterable[Consequence]) -> None:
        for consequence in consequences:
            match consequence:
                case Renominated(old, new):
                    self._renominated(old, new)
                # A call without an error was cancelled: the process ends.
                case Lost(outcome) if outcome.error is not None:
                    _warn(outcome.call, outcome.error)
                case Released(uid):
                    released = self._released.pop(uid, None)
                    if released is not None:
                        released.set()


def _warn(call: PodStatusPatch, error: Exception) -> None:
    """Log a failed call. No more is done, since the pod is tried again anyway."""
    if call.purpose is Purpose.NOMINATE:
        _log.warning(
            "Could not write a nomination", pod=call.key, node=call.node_name, step="nominate", error=error
        )
    elif call.purpose is Purpose.CLEAR:
        _log.warning("Could not clear a nomination", pod=call.key, step="preempt", error=error)
    else:
        _log.warning("Could not write a pod's status", pod=call.key, step="status", error=error)
