"""Write the outcome of a pod group's scheduling cycle into its status.

Source: KEP-4671; kube-scheduler 1.36, updatePodGroupCondition. A group that was placed once stays so: later
pods of it that find no place do not take that back.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from anyio.abc import TaskGroup

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import meta, workloads
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock, to_time
from nominee.machinery.wire import codec
from nominee.scheduler.attempts.group import Verdict
from nominee.scheduler.framework.runtime.framework import Framework

CONDITION: Final = "PodGroupScheduled"
_log = logs.get()


def new_condition(verdict: Verdict, generation: int, now: float) -> meta.Condition:
    """Return the verdict as a condition."""
    rejected = "SchedulerError" if verdict.error else "Unschedulable"
    return meta.Condition(
        type=CONDITION,
        status="True" if verdict.is_placed else "False",
        observedGeneration=generation,
        lastTransitionTime=to_time(now),
        reason="Scheduled" if verdict.is_placed else rejected,
        message=verdict.message,
    )


def with_condition(group: workloads.PodGroup, condition: meta.Condition) -> workloads.PodGroupStatus | None:
    """Return the status with the condition; None when nothing changes."""
    status = workloads.PodGroupStatus()
    status.CopyFrom(group.status)
    known = next((each for each in status.conditions if each.type == condition.type), None)
    if known is None:
        status.conditions.append(condition)
        return status
    if known.status == "True" and condition.status != "True":
        return None
    if known.status == condition.status:
        condition.lastTransitionTime.CopyFrom(known.lastTransitionTime)
    if known == condition:
        return None
    known.CopyFrom(condition)
    return status


class GroupConditions:
    """One write after another for a group, each of its latest verdict: an older one is never the last.

    Each begins with what the API server has, since the watch may not show the write before it yet.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._latest: dict[ObjectKey, Verdict] = {}  # of groups that are being written

    def decided(self, framework: Framework, key: ObjectKey, verdict: Verdict, tasks: TaskGroup) -> None:
        """Have the verdict written by a task."""
        is_written = key in self._latest
        self._latest[key] = verdict
        if not is_written:
            tasks.start_soon(self._run, framework, key)

    async def _run(self, framework: Framework, key: ObjectKey) -> None:
        while True:
            verdict = self._latest[key]
            write = partial(self._write, framework, key, verdict)
            try:
                # Each time with a new read: it may be written already, by a call whose answer was lost.
                await retry_unavailable(write, clock=self._clock)
            except StatusError as error:  # the next cycle writes again
                _log.warning("Could not write a pod group's status", group=key, step="status", error=error)
            if self._latest[key] is verdict:
                del self._latest[key]
                return

    async def _write(self, framework: Framework, key: ObjectKey, verdict: Verdict) -> None:
        if framework.lister(kinds.POD_GROUP).get(key.name, key.namespace) is None:
            return
        group = await self._client.get(kinds.POD_GROUP, key.name, key.namespace)
        condition = new_condition(verdict, group.metadata.generation, self._clock.now())
        status = with_condition(group, condition)
        if status is None:
            return
        patch = diff_strategic(
            workloads.PodGroup.DESCRIPTOR.full_name,
            {"status": codec.to_json(group.status)},
            {"status": codec.to_json(status)},
        )
        await self._client.patch(kinds.POD_GROUP, key.name, key.namespace, patch, subresource="status")
