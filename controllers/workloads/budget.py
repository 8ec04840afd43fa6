"""How many pods a disruption budget lets go. Pure.

Source: kube-controller-manager 1.36, pkg/controller/disruption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from machinery.objects import condition_is, get_condition, is_terminating
from machinery.pb import core, intstr, meta, policy

CONDITION: Final = "DisruptionAllowed"
EVICTION_SECONDS_MAX: Final = 120.0
"""An eviction that the API server allowed and that did not delete the pod in this time counts no longer."""


class SyncError(Exception):
    """The budget cannot be worked out; the text becomes the condition's message."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A controller of some of the pods, and how many it wants; None where its scale is not known to us."""

    uid: str
    replicas: int | None


def _percent(value: intstr.IntOrString, total: int) -> int:
    """An absolute number, or a percentage of `total` rounded up."""
    if value.type == 0:
        return value.intVal
    text = value.strVal
    if not text.endswith("%") or not text[:-1].isdigit():
        raise SyncError(f"invalid value for IntOrString: invalid type: string is not a percentage: {text!r}")
    return -(-int(text[:-1]) * total // 100)


def _scales(pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]) -> tuple[int, Sequence[core.Pod]]:
    """(sum of the controllers' wanted replicas, pods without a controller that has a scale).

    `scales` is by pod uid; a pod without controller maps to None.
    """
    wanted: dict[str, int] = {}
    unmanaged = []
    for pod in pods:
        scale = scales.get(pod.metadata.uid)
        if scale is None:
            unmanaged.append(pod)
        elif scale.replicas is None:
            raise SyncError("does not implement the scale subresource")
        else:
            wanted[scale.uid] = scale.replicas
    return sum(wanted.values()), unmanaged


def expected_and_desired(
    budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]
) -> tuple[int, int]:
    """(expectedPods, desiredHealthy). Raises SyncError where pods have no scale to compare with."""
    spec = budget.spec
    if spec.HasField("maxUnavailable"):
        expected, unmanaged = _scales(pods, scales)
        if unmanaged:
            names = ", ".join(pod.metadata.name for pod in unmanaged[:3])
            raise SyncError(f"found no controllers for pod(s) {names}")
        return expected, max(expected - _percent(spec.maxUnavailable, expected), 0)
    if spec.HasField("minAvailable"):
        if spec.minAvailable.type == 0:
            return len(pods), spec.minAvailable.intVal
        expected, unmanaged = _scales(pods, scales)
        if unmanaged:
            names = ", ".join(pod.metadata.name for pod in unmanaged[:3])
            raise SyncError(f"found no controllers for pod(s) {names}")
        return expected, _percent(spec.minAvailable, expected)
    return len(pods), 0


def _still_disrupted(
    budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], now_seconds: float
) -> dict[str, meta.Time]:
    """Evictions that were allowed and have not yet shown: pods that are there and not terminating."""
    by_name = {pod.metadata.name: pod for pod in pods}
    return {
        name: since
        for name, since in budget.status.disruptedPods.items()
        if name in by_name
        and not is_terminating(by_name[name])
        and since.seconds + EVICTION_SECONDS_MAX > now_seconds
    }


def _condition(allowed: int, failure: str) -> meta.Condition:
    if failure:
        return meta.Condition(type=CONDITION, status="False", reason="SyncFailed", message=failure)
    if allowed > 0:
        return meta.Condition(type=CONDITION, status="True", reason="SufficientPods", message="")
    return meta.Condition(type=CONDITION, status="False", reason="InsufficientPods", message="")


def _set_condition(status: policy.PodDisruptionBudgetStatus, new: meta.Condition, now: meta.Time) -> None:
    old = get_condition(status.conditions, CONDITION)
    if old is None:
        old = status.conditions.add(type=CONDITION)
    if old.status != new.status:
        old.lastTransitionTime.CopyFrom(now)
    old.status, old.reason, old.message = new.status, new.reason, new.message
    old.observedGeneration = new.observedGeneration


def status_of(
    budget: policy.PodDisruptionBudget,
    pods: Sequence[core.Pod],
    scales: Mapping[str, Scale | None],
    now: meta.Time,
) -> policy.PodDisruptionBudgetStatus:
    """The budget's status for the pods that it selects."""
    status = policy.PodDisruptionBudgetStatus()
    status.CopyFrom(budget.status)
    status.disruptedPods.clear()
    disrupted = _still_disrupted(budget, pods, now.seconds)
    failure = ""
    try:
        expected, desired = expected_and_desired(budget, pods, scales)
    except SyncError as error:
        # A budget that cannot be worked out allows nothing; its other numbers stay as they were.
        failure = str(error)
        status.CopyFrom(budget.status)
        status.disruptionsAllowed = 0
    else:
        healthy = sum(
            condition_is(pod.status.conditions, "Ready")
            and not is_terminating(pod)
            and pod.metadata.name not in disrupted
            for pod in pods
        )
        status.expectedPods, status.desiredHealthy, status.currentHealthy = expected, desired, healthy
        status.disruptionsAllowed = max(healthy - desired, 0) if expected > 0 else 0
        for name, since in disrupted.items():
            status.disruptedPods[name].CopyFrom(since)
    status.observedGeneration = budget.metadata.generation
    condition = _condition(status.disruptionsAllowed, failure)
    condition.observedGeneration = budget.metadata.generation
    _set_condition(status, condition, now)
    return status
