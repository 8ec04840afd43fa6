"""Writes scheduling results into pods' status: one write after another for a pod, many pods at once.

A pod whose attempt failed may be tried again, and even bound, before its failure is written; the writes of a
pod are therefore kept in order, and the binding waits for them. What a write answered is remembered until the
watch shows it, so that the next one is compared with what is there and not with what was.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import anyio

from machinery import failpoints, kinds, logs
from machinery.client import Client, retry_unavailable
from machinery.clock import Clock
from machinery.errors import StatusError
from machinery.pb import core
from scheduler.cycle import Failed
from scheduler.framework.interface import NominatingInfo
from scheduler.pod_status import status_patch
from scheduler.shell import steps

REMEMBERED_MAX: Final = 10_000
ATTEMPTS_MAX: Final = 9
_log = logs.get()


class StatusWriter:
    """See the module's text."""

    def __init__(
        self, client: Client, clock: Clock, slots: anyio.Semaphore, *, observed_generation: bool
    ) -> None:
        self._client = client
        self._clock = clock
        self._slots = slots
        self._observed_generation = observed_generation
        self._last: dict[str, anyio.Event] = {}  # uid -> when the last write begun so far is over
        self._answers: OrderedDict[str, core.Pod] = OrderedDict()

    async def wait(self, uid: str) -> None:
        """Until the writes begun for the pod are over."""
        event = self._last.get(uid)
        if event is not None:
            await event.wait()

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._answers.pop(uid, None)

    def ticket(self, uid: str) -> Ticket:
        """A place in the pod's line; to be taken when the write is decided, not when it is made."""
        before = self._last.get(uid)
        ticket = Ticket(self, uid, before)
        self._last[uid] = ticket.over
        return ticket

    def release(self, ticket: Ticket) -> None:
        """The ticket's write is over."""
        ticket.over.set()
        if self._last.get(ticket.uid) is ticket.over:
            del self._last[ticket.uid]

    async def write(
        self, ticket: Ticket, pod: core.Pod, failed: Failed | None, nominating: NominatingInfo | None
    ) -> None:
        """Writes the failure, or the nomination alone; raises StatusError or FailpointError.

        `pod` is the pod as it was when it was decided.
        """
        if ticket.before is not None:
            await ticket.before.wait()
        base = self._base(pod)
        patch = status_patch(
            base,
            nominating,
            reason="" if failed is None else failed.reason.value,
            message="" if failed is None else failed.message,
            now=self._clock.now(),
            observed_generation=self._observed_generation,
        )
        if patch is None:
            return
        async with self._slots:
            answer = await retry_unavailable(
                lambda: self._patch(pod, patch),
                clock=self._clock,
                attempts_max=ATTEMPTS_MAX,
                seconds_first=0.02,
            )
        self._answers[pod.metadata.uid] = answer
        self._answers.move_to_end(pod.metadata.uid)
        if len(self._answers) > REMEMBERED_MAX:
            self._answers.popitem(last=False)

    async def write_failure(
        self, ticket: Ticket, pod: core.Pod, failed: Failed, nominating: NominatingInfo | None
    ) -> None:
        """As `write` and then `release`; what goes wrong is logged, since the pod is retried anyway."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        try:
            await steps.STATUS_BEFORE.hit(pod=key)
            await self.write(ticket, pod, failed, nominating)
            await steps.STATUS_AFTER.hit(pod=key)
        except (StatusError, failpoints.FailpointError) as error:
            _log.warning("Could not write a pod's status", pod=key, step="status", error=error)
        finally:
            self.release(ticket)

    async def _patch(self, pod: core.Pod, patch: dict[str, Any]) -> core.Pod:
        metadata = pod.metadata
        return await self._client.patch(
            kinds.POD, metadata.name, metadata.namespace, patch, subresource="status"
        )

    def _base(self, pod: core.Pod) -> core.Pod:
        """The pod, or what our last write made of it if that is newer."""
        answer = self._answers.get(pod.metadata.uid)
        if answer is not None and _revision(answer) > _revision(pod):
            return answer
        return pod


class Ticket:
    """A place in the line of one pod's writes."""

    __slots__ = ("before", "over", "uid", "writer")

    def __init__(self, writer: StatusWriter, uid: str, before: anyio.Event | None) -> None:
        self.writer = writer
        self.uid = uid
        self.before = before
        self.over = anyio.Event()


def _revision(pod: core.Pod) -> int:
    version = pod.metadata.resourceVersion
    return int(version) if version.isdigit() else 0
