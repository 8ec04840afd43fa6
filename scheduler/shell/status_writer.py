"""Write scheduling results into pods' status: one write after another for a pod, many pods at once.

A pod whose attempt failed may be tried again, and even bound, before its failure is written; the writes of
a pod are therefore kept in order, and the binding waits for them. A write that has not begun when the next
one is decided is skipped, and the next one includes it (KEP-5229, merging of calls). Each is compared with
the newest known state, which may be the response to the last one.

Failures are written by a few tasks from a queue with one place for a pod: while the API server is
unavailable the queue holds what was last decided for each pod, and it is written when the server is back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.abc
from cachetools import LRUCache

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, resource_version_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime import failpoints, logs
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.cycle import Failed
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.pending_nominations import PendingNominations
from nominee.scheduler.pod_status import status_patch
from nominee.scheduler.shell import steps

CALLS_MAX: Final = 64  # status writes at the same time
ANSWERS_MAX: Final = 10_000
ATTEMPTS_MAX: Final = 9
WORKERS_MAX: Final = 64  # tasks that write failures
AWAY: Final = frozenset((429, 503, 504))  # codes of an API server that cannot be reached, or is overloaded
_log = logs.get()


class Ticket:
    """A place in the order of one pod's writes, and the nomination to be written."""

    __slots__ = ("before", "has_begun", "is_awaited", "is_left_out", "is_over", "nominating", "number", "uid")

    def __init__(self, uid: str, nominating: NominatingInfo | None, before: Ticket | None) -> None:
        self.uid = uid
        self.nominating = nominating
        self.before = before
        self.number = 0  # of the pending nomination
        self.has_begun = False
        self.is_left_out = False  # the next ticket includes this write
        self.is_awaited = False  # a binding waits for it
        self.is_over = anyio.Event()


@dataclass(frozen=True, slots=True)
class _Failure:
    """The failure to be written of a pod, as it was when it was decided; None: its nomination alone."""

    ticket: Ticket
    pod: core.Pod
    failed: Failed | None


class StatusWriter:
    """Writes statuses of pods; `cached` returns the pod that the watch last showed under a name.

    `resync` is called for a pod whose nomination another client had changed before the response to our
    write came, with the pod as it was taken to be, and as it is.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        slots: anyio.Semaphore,
        nominations: PendingNominations,
        *,
        cached: Callable[[ObjectKey], core.Pod | None],
        resync: Callable[[core.Pod, core.Pod], None],
        observed_generation: bool,
    ) -> None:
        self._client = client
        self._clock = clock
        self._slots = slots
        self._nominations = nominations
        self._cached = cached
        self._resync = resync
        self._observed_generation = observed_generation
        self._last: dict[str, Ticket] = {}  # by uid, of the writes that are not over
        self._answers: LRUCache[str, core.Pod] = LRUCache(ANSWERS_MAX)
        self._queued: OrderedDict[str, _Failure] = OrderedDict()  # by uid: failures that no task has begun
        self._workers = 0

    @property
    def waiting(self) -> int:
        """Return how many failures no task has begun to write."""
        return len(self._queued)

    async def wait(self, uid: str) -> None:
        """Wait until the pod's decided writes are over, or the API server could not be reached for them."""
        last = self._last.get(uid)
        if last is not None:
            last.is_awaited = True
            await last.is_over.wait()

    def forget(self, uid: str) -> None:
        """Forget a pod that was deleted."""
        self._drop_queued(uid)
        self._answers.pop(uid, None)
        self._nominations.forget(uid)

    def ticket(self, uid: str, nominating: NominatingInfo | None) -> Ticket:
        """Return a place in the order of the pod's writes; to be taken when a write is decided.

        The nomination counts from now on (see `PendingNominations`).
        """
        before = self._last.get(uid)
        if before is not None and not before.has_begun:
            before.is_left_out = True
            if nominating is None or nominating.mode is not NominatingMode.Override:
                nominating = before.nominating
            former = before.before
            if self._drop_queued(uid):
                before = former
        ticket = Ticket(uid, nominating, before)
        if nominating is not None and nominating.mode is NominatingMode.Override:
            ticket.number = self._nominations.decide(uid, nominating.node_name)
        self._last[uid] = ticket
        return ticket

    def _drop_queued(self, uid: str) -> bool:
        """Drop the pod's queued failure; return whether there was one."""
        queued = self._queued.pop(uid, None)
        if queued is None:
            return False
        queued.ticket.has_begun = queued.ticket.is_left_out = True
        self.release(queued.ticket)
        return True

    def release(self, ticket: Ticket) -> None:
        """End the ticket's write, made or not."""
        if not ticket.has_begun:
            self._nominations.written(ticket.uid, ticket.number, None)
        ticket.is_over.set()
        ticket.before = None
        if self._last.get(ticket.uid) is ticket:
            del self._last[ticket.uid]

    async def write(self, ticket: Ticket, pod: core.Pod, failed: Failed | None) -> None:
        """Write the failure, or the nomination alone. `pod` is the pod as it was when it was decided.

        Raises:
            StatusError, FailpointError: the write failed.
        """
        revision: int | None = None
        try:
            revision = await self._in_turn(ticket, pod, failed)
        finally:
            self._settle(ticket, pod, revision)

    async def _in_turn(self, ticket: Ticket, pod: core.Pod, failed: Failed | None) -> int | None:
        """Write after the ticket before; return the pod's revision then, None where nothing is written."""
        if ticket.before is not None:
            await ticket.before.is_over.wait()
        async with self._slots:
            ticket.has_begun = True
            return None if ticket.is_left_out else resource_version_of(await self._write(ticket, pod, failed))

    async def _write(self, ticket: Ticket, pod: core.Pod, failed: Failed | None) -> core.Pod:
        """Write what differs and return the pod as it is then; a recreated pod is left alone."""
        base = self._base(pod)
        if base is None:
            return pod
        patch = status_patch(
            base,
            ticket.nominating,
            reason="" if failed is None else failed.reason.value,
            message="" if failed is None else failed.message,
            now=self._clock.now(),
            observed_generation=self._observed_generation,
        )
        if patch is None:
            return base
        answer = await retry_unavailable(
            lambda: self._patch(pod, patch),
            clock=self._clock,
            attempts_max=ATTEMPTS_MAX,
            seconds_first=0.02,
        )
        self._answers[pod.metadata.uid] = answer
        return answer

    def _settle(self, ticket: Ticket, pod: core.Pod, revision: int | None) -> None:
        """Compare with the watch, which may have shown the write already, and later changes."""
        if ticket.is_left_out or not ticket.number:
            return
        shown = self._cached(ObjectKey(pod.metadata.namespace, pod.metadata.name))
        if shown is None or shown.metadata.uid != ticket.uid:
            self._nominations.forget(ticket.uid)
            return
        taken_for = self._nominations.apply(shown)
        self._nominations.written(ticket.uid, ticket.number, revision)
        now_seen = self._nominations.apply(shown)
        if taken_for.status.nominatedNodeName != now_seen.status.nominatedNodeName:
            self._resync(taken_for, now_seen)

    def write_failure(
        self, ticket: Ticket, pod: core.Pod, failed: Failed | None, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Have a failure, or the nomination alone, written and its ticket released by a task of the group."""
        self._queued[ticket.uid] = _Failure(ticket, pod, failed)
        if self._workers < WORKERS_MAX:
            self._workers += 1
            tasks.start_soon(self._work)

    async def _work(self) -> None:
        """Write failures, the oldest first, as long as there are any."""
        try:
            while self._queued:
                _, failure = self._queued.popitem(last=False)
                if not await self._try_failure(failure):
                    self._queued[failure.ticket.uid] = failure
        finally:
            self._workers -= 1

    async def _try_failure(self, failure: _Failure) -> bool:
        """Write a failure; return False if it is to be tried again.

        That is when the API server is unavailable and nothing newer has been decided. Other errors are
        logged, since the pod is retried anyway.
        """
        ticket, pod = failure.ticket, failure.pod
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        is_over = True
        try:
            await steps.STATUS_BEFORE.hit(pod=key)
            is_over = await self._write_or_wait(failure)
            if is_over:
                await steps.STATUS_AFTER.hit(pod=key)
        except (StatusError, failpoints.FailpointError) as error:
            _log.warning("Could not write a pod's status", pod=key, step="status", error=error)
        finally:
            if is_over:
                self.release(ticket)
        return is_over

    async def _write_or_wait(self, failure: _Failure) -> bool:
        """Write a failure; return False to try again. Until then the decision stays pending."""
        ticket, revision, is_over = failure.ticket, None, True
        try:
            revision = await self._in_turn(ticket, failure.pod, failure.failed)
        except StatusError as error:
            is_over = error.code not in AWAY or ticket.is_awaited or self._last.get(ticket.uid) is not ticket
            if is_over:
                raise
            ticket.has_begun = False
        finally:
            if is_over:
                self._settle(ticket, failure.pod, revision)
        return is_over

    async def _patch(self, pod: core.Pod, patch: dict[str, Any]) -> core.Pod:
        metadata = pod.metadata
        return await self._client.patch(
            kinds.POD, metadata.name, metadata.namespace, patch, subresource="status"
        )

    def _base(self, pod: core.Pod) -> core.Pod | None:
        """Return the newest known state: what the watch shows, or our last write if that is newer.

        None: another pod has the name by now. The patch has no uid precondition, as upstream's has none.
        """
        shown = self._cached(ObjectKey(pod.metadata.namespace, pod.metadata.name))
        if shown is not None:
            if shown.metadata.uid != pod.metadata.uid:
                return None
            pod = shown
        answer = self._answers.get(pod.metadata.uid)
        return (
            answer if answer is not None and resource_version_of(answer) > resource_version_of(pod) else pod
        )
