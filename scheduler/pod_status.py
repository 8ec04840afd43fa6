"""Build the patch that writes a scheduling result into a pod's status.

Source: kube-scheduler 1.36, updatePod, and the patch that client-go's two-way diff makes of it.
"""

from __future__ import annotations

from typing import Any, Final

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import rfc3339
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode

POD_SCHEDULED: Final = "PodScheduled"
NOTE_LENGTH_MAX: Final = 1024
_CUT: Final = " ..."


def status_patch(
    pod: core.Pod,
    nominating: NominatingInfo | None,
    *,
    reason: str = "",
    message: str = "",
    now: float = 0.0,
    observed_generation: bool = True,
    is_uncertain: bool = False,
) -> dict[str, Any] | None:
    """Return the patch of `pod.status`; None when nothing changes.

    With a reason: PodScheduled=False for it. `nominating` sets or clears nominatedNodeName where it differs;
    `is_uncertain`: also where it does not, since the server may have another one.
    """
    status: dict[str, Any] = {}
    if reason:
        generation = pod.metadata.generation if observed_generation else 0
        status |= _condition_patch(pod, reason, message, now, generation)
    if nominating is not None and nominating.mode is NominatingMode.Override:
        wanted = nominating.node_name
        if is_uncertain or wanted != pod.status.nominatedNodeName:
            status["nominatedNodeName"] = wanted or None
    return {"status": status} if status else None


def _condition_patch(pod: core.Pod, reason: str, message: str, now: float, generation: int) -> dict[str, Any]:
    conditions = pod.status.conditions
    old = get_condition(conditions, POD_SCHEDULED)
    row: dict[str, Any] = {}
    if old is None:
        row = {"lastProbeTime": None, "lastTransitionTime": rfc3339(now)}
    elif old.status != "False":
        row = {"lastTransitionTime": rfc3339(now)}
    elif old.reason == reason and old.message == message:
        return {}
    if old is None or old.message != message:
        row["message"] = message
    if generation and (old is None or old.observedGeneration != generation):
        row["observedGeneration"] = generation
    if old is None or old.reason != reason:
        row["reason"] = reason
    if old is None or old.status != "False":
        row["status"] = "False"
    row["type"] = POD_SCHEDULED
    found: dict[str, Any] = {}
    if conditions:
        order = [condition.type for condition in conditions]
        if old is None:
            order.append(POD_SCHEDULED)
        found["$setElementOrder/conditions"] = [{"type": name} for name in order]
    found["conditions"] = [row]
    return found


def note(message: str) -> str:
    """Return the message as an event's note, cut to the length limit of events."""
    if len(message.encode()) <= NOTE_LENGTH_MAX:
        return message
    return message.encode()[: NOTE_LENGTH_MAX - len(_CUT)].decode(errors="ignore") + _CUT
