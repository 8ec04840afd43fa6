"""How many pods a disruption budget lets go. Pure.

Source: kube-controller-manager 1.36, pkg/controller/disruption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from machinery.api.objects import condition_is, controller_of, get_condition, is_terminating
from machinery.api.pb import core, intstr, meta, policy

CONDITION: Final = "DisruptionAllowed"
EVICTION_SECONDS_MAX: Final = 120.0
"""An eviction that the API server allowed and that did not delete the pod in this time counts no longer."""
KEPT_REASONS: Final = frozenset({"TerminationByKubelet"})
"""A kubelet's DisruptionTarget is never void: its pod may take long to end."""


class SyncError(Exception):
    """The budget cannot be worked out; the text becomes the condition's message."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A controller of some of the pods, and how many it wants; None where its kind has no scale."""

    uid: str
    replicas: int | None
    resource: str = ""


def _amount(value: intstr.IntOrString, total: int) -> int:
    """An absolute number, or a percentage of `total` rounded up."""
    if value.type == 0:
        return value.intVal
    text = value.strVal
    if not text.endswith("%") or not text[:-1].isdigit():
        raise SyncError("invalid value for IntOrString: invalid type: string is not a percentage")
    return -(-int(text[:-1]) * total // 100)


def _scale(pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]) -> int:
    """The sum of what the pods' controllers want. Pods without a controller do not count."""
    wanted: dict[str, int] = {}
    for pod in pods:
        if controller_of(pod) is None:
            continue
        scale = scales.get(pod.metadata.uid)
        if scale is None:
            raise SyncError(f'found no controllers for pod "{pod.metadata.name}"')
        if scale.replicas is None:
            raise SyncError(f"{scale.resource} does not implement the scale subresource")
        wanted[scale.uid] = scale.replicas
    return sum(wanted.values())


def unmanaged(budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod]) -> list[str]:
    """Names of the pods that make this budget's numbers doubtful: it compares with controllers' scales."""
    spec = budget.spec
    if spec.HasField("maxUnavailable") or spec.minAvailable.type == 1:
        return [pod.metadata.name for pod in pods if controller_of(pod) is None]
    return []


def expected_and_desired(
    budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]
) -> tuple[int, int]:
    """(expectedPods, desiredHealthy). `scales` is by pod uid; None where the controller is not there.

    Raises SyncError where a controller's scale cannot be known.
    """
    spec = budget.spec
    if spec.HasField("maxUnavailable"):
        expected = _scale(pods, scales)
        return expected, max(expected - _amount(spec.maxUnavailable, expected), 0)
    if not spec.HasField("minAvailable"):
        return 0, 0
    if spec.minAvailable.type == 0:
        return len(pods), spec.minAvailable.intVal
    expected = _scale(pods, scales)
    return expected, _amount(spec.minAvailable, expected)


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
        and since.seconds + EVICTION_SECONDS_MAX >= now_seconds
    }


def not_deleted(
    budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], now_seconds: float
) -> list[core.Pod]:
    """Pods whose eviction was allowed long ago, and that are still there."""
    since = budget.status.disruptedPods
    return [
        pod
        for pod in pods
        if pod.metadata.name in since
        and not is_terminating(pod)
        and since[pod.metadata.name].seconds + EVICTION_SECONDS_MAX < now_seconds
    ]


def recheck_seconds(status: policy.PodDisruptionBudgetStatus, now_seconds: float) -> float | None:
    """When the first of the allowed evictions is too old; None without any."""
    if not status.disruptedPods:
        return None
    oldest = min(since.seconds for since in status.disruptedPods.values())
    return max(oldest + EVICTION_SECONDS_MAX - now_seconds, 0.0) + 1.0


def _set_condition(
    status: policy.PodDisruptionBudgetStatus, value: str, reason: str, message: str, now: meta.Time
) -> None:
    row = get_condition(status.conditions, CONDITION)
    if row is None:
        row = status.conditions.add(type=CONDITION)
    if row.status != value:
        row.lastTransitionTime.CopyFrom(now)
    row.status, row.reason, row.message = value, reason, message
    row.observedGeneration = status.observedGeneration


def failed_status(
    budget: policy.PodDisruptionBudget, failure: str, now: meta.Time
) -> policy.PodDisruptionBudgetStatus:
    """The status when the budget cannot be worked out: it allows nothing, the rest stays as it was."""
    status = policy.PodDisruptionBudgetStatus()
    status.CopyFrom(budget.status)
    status.disruptionsAllowed = 0
    _set_condition(status, "False", "SyncFailed", failure, now)
    return status


def status_of(
    budget: policy.PodDisruptionBudget,
    pods: Sequence[core.Pod],
    scales: Mapping[str, Scale | None],
    now: meta.Time,
) -> policy.PodDisruptionBudgetStatus:
    """The budget's status for the pods that it selects. Raises SyncError (then `failed_status` holds)."""
    expected, desired = expected_and_desired(budget, pods, scales)
    disrupted = _still_disrupted(budget, pods, now.seconds)
    healthy = sum(
        condition_is(pod.status.conditions, "Ready")
        and not is_terminating(pod)
        and pod.metadata.name not in disrupted
        for pod in pods
    )
    status = policy.PodDisruptionBudgetStatus(
        expectedPods=expected,
        desiredHealthy=desired,
        currentHealthy=healthy,
        # Nothing may go while there are no pods: the first may come before this controller knows of them.
        disruptionsAllowed=max(healthy - desired, 0) if expected > 0 else 0,
        observedGeneration=budget.metadata.generation,
        conditions=budget.status.conditions,
    )
    for name, since in disrupted.items():
        status.disruptedPods[name].CopyFrom(since)
    if status.disruptionsAllowed > 0:
        _set_condition(status, "True", "SufficientPods", "", now)
    else:
        _set_condition(status, "False", "InsufficientPods", "", now)
    return status


def stale_disruption(pod: core.Pod, now_seconds: float) -> float | None:
    """Seconds until a DisruptionTarget condition is void since the pod was not deleted; None without one."""
    if is_terminating(pod) or pod.status.phase in ("Succeeded", "Failed"):
        return None
    target = get_condition(pod.status.conditions, "DisruptionTarget")
    if target is None or target.status != "True" or target.reason in KEPT_REASONS:
        return None
    return max(target.lastTransitionTime.seconds + EVICTION_SECONDS_MAX - now_seconds, 0.0)
