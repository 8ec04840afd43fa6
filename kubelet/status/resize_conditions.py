"""The resize conditions in a pod's status, as the emulated version knows them. Pure.

Since 1.33: conditions PodResizePending and PodResizeInProgress; before: the field `status.resize`.
"""

from __future__ import annotations

from nominee.kubelet.resize import conditions
from nominee.kubelet.resize.conditions import ResizeCondition
from nominee.machinery.api import objects
from nominee.machinery.api.pb import core, meta
from nominee.machinery.runtime import clock


def write_resize_conditions(
    status: core.PodStatus,
    pending: ResizeCondition | None,
    in_progress: ResizeCondition | None,
    *,
    observed_generation: bool = True,
) -> None:
    """Set or remove both conditions (1.33 and later)."""
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
    """Return the value of `status.resize` (before 1.33): Deferred, Infeasible, InProgress or ""."""
    if pending is not None:
        return pending.reason
    return "InProgress" if in_progress is not None else ""


PREEMPTION_DISABLED = "PodResizePreemptionDisabled"


def write_preemption_disabled(status: core.PodStatus, row: core.PodCondition | None, now: meta.Time) -> None:
    """Set or remove the condition that the node forbids preemption for this deferred resize."""
    if row is None:
        objects.remove_condition(status.conditions, PREEMPTION_DISABLED)
    else:
        objects.set_condition(status.conditions, row, now)


def preemption_disabled(node: str) -> core.PodCondition:
    """Return the condition for a deferred resize.

    Source: KEP-5836, "PodResizePreemptionDisabled Pod Condition".
    """
    return core.PodCondition(
        type=PREEMPTION_DISABLED,
        status="True",
        reason="PreemptionDisabledByNodePolicy",
        message=f"Preemption for in-place pod resize is disabled on node '{node}' by preemption policy.",
    )
