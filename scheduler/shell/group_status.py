"""Writes into a pod group's status what its scheduling cycle came to.

Source: KEP-4671; kube-scheduler 1.36, updatePodGroupCondition. A group that was placed once stays so: later
pods of it that find no place do not take that back.
"""

from __future__ import annotations

from typing import Final

from machinery import kinds, logs
from machinery.client import retry_unavailable
from machinery.clock import Clock, to_time
from machinery.errors import StatusError
from machinery.objects import ObjectKey
from machinery.pb import meta, workloads
from machinery.strategic_diff import diff_strategic
from machinery.wire import codec
from scheduler.framework.runtime import Framework
from scheduler.group_cycle import Verdict

CONDITION: Final = "PodGroupScheduled"
_log = logs.get()


def new_condition(verdict: Verdict, generation: int, now: float) -> meta.Condition:
    """What the verdict says, as a condition."""
    refused = "SchedulerError" if verdict.error else "Unschedulable"
    return meta.Condition(
        type=CONDITION,
        status="True" if verdict.is_placed else "False",
        observedGeneration=generation,
        lastTransitionTime=to_time(now),
        reason="Scheduled" if verdict.is_placed else refused,
        message=verdict.message,
    )


def with_condition(group: workloads.PodGroup, condition: meta.Condition) -> workloads.PodGroupStatus | None:
    """The status with it; None when nothing changes."""
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


async def write_group_condition(framework: Framework, key: ObjectKey, verdict: Verdict, clock: Clock) -> None:
    """What goes wrong is logged; the next cycle writes again."""
    group = framework.lister(kinds.POD_GROUP).get(key.name, key.namespace)
    if group is None:
        return
    status = with_condition(group, new_condition(verdict, group.metadata.generation, clock.now()))
    if status is None:
        return
    patch = diff_strategic(
        workloads.PodGroup.DESCRIPTOR.full_name,
        {"status": codec.to_json(group.status)},
        {"status": codec.to_json(status)},
    )
    try:
        await retry_unavailable(
            lambda: framework.client.patch(
                kinds.POD_GROUP, key.name, key.namespace, patch, subresource="status"
            ),
            clock=clock,
        )
    except StatusError as error:
        _log.warning("Could not write a pod group's status", group=key, step="status", error=error)
