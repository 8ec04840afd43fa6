"""Writes the resize conditions into a pod's status, as the emulated version knows them.

Since 1.33: conditions PodResizePending and PodResizeInProgress; before: the field `status.resize`.
"""

from __future__ import annotations

from kubelet import conditions
from kubelet.conditions import ResizeCondition
from machinery import clock, objects
from machinery.pb import core


def write_resize_conditions(
    status: core.PodStatus,
    pending: ResizeCondition | None,
    in_progress: ResizeCondition | None,
    *,
    observed_generation: bool = True,
) -> None:
    """Sets or removes both conditions (1.33 and later)."""
    for name, held in ((conditions.PENDING, pending), (conditions.IN_PROGRESS, in_progress)):
        if held is None:
            objects.remove_condition(status.conditions, name)
            continue
        row = objects.get_condition(status.conditions, name)
        if row is None:
            row = status.conditions.add()
        row.Clear()
        row.type = name
        row.status = "True"
        row.reason = held.reason
        row.message = held.message
        if observed_generation:
            row.observedGeneration = held.observed_generation
        row.lastTransitionTime.CopyFrom(clock.to_time(held.since))
        row.lastProbeTime.CopyFrom(clock.to_time(held.probed))


def resize_status(pending: ResizeCondition | None, in_progress: ResizeCondition | None) -> str:
    """The value of `status.resize` (before 1.33): Deferred, Infeasible, InProgress or nothing."""
    if pending is not None:
        return pending.reason
    return "InProgress" if in_progress is not None else ""
