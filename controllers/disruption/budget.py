"""How many evictions a PodDisruptionBudget allows, and its events. Pure.

Source: kube-controller-manager 1.36, pkg/controller/disruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import (
    condition_is,
    controller_of,
    copy_of,
    get_condition,
    has_ended,
    is_terminating,
    set_condition,
)
from nominee.machinery.api.pb import apps, core, intstr, meta, policy
from nominee.machinery.api.selectors import LabelSelector, go_text

CONDITION: Final = "DisruptionAllowed"
FAILED_REASON: Final = "SyncFailed"
EVICTION_SECONDS_MAX: Final = 120.0
"""An eviction that the API server allowed is ignored when the pod was not deleted within this time."""
_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the "
    "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account "
    'for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)
KEPT_REASONS: Final = frozenset({"TerminationByKubelet"})
"""A kubelet's DisruptionTarget stays: its pod may take long to end."""


class SyncError(Exception):
    """A budget that cannot be computed; the text becomes the condition's message."""


def selects(budget: policy.PodDisruptionBudget, pod: core.Pod) -> bool:
    """Report whether a budget selects a pod of its namespace; without a selector it selects no pod."""
    spec = budget.spec
    return spec.HasField("selector") and LabelSelector.from_message(spec.selector).matches(
        pod.metadata.labels
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """A controller of some of the pods, and its spec.replicas; None where its kind has no scale."""

    uid: str
    replicas: int | None
    resource: str = ""


Scaled = apps.Deployment | apps.ReplicaSet | apps.StatefulSet | core.ReplicationController
SCALED: Final = (kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.REPLICATION_CONTROLLER)
"""The kinds of controllers that have spec.replicas."""


def scale_of(obj: core.Pod | Scaled, find: Callable[[str, str], Scaled | None]) -> Scale | None:
    """Return the scale of a pod's controller, None where there is no such controller.

    A ReplicaSet of a Deployment has its Deployment's. `find` returns the controller of a kind and name.
    """
    owner = controller_of(obj)
    if owner is None:
        return None
    if owner.kind in (kind.kind for kind in SCALED):
        found = find(owner.kind, owner.name)
        if found is None or found.metadata.uid != owner.uid:
            return None
        above = controller_of(found) if owner.kind == kinds.REPLICA_SET.kind else None
        if above is not None and above.kind == kinds.DEPLOYMENT.kind:
            return scale_of(found, find)
        return Scale(owner.uid, found.spec.replicas)
    kind = kinds.by_kind(owner.apiVersion, owner.kind)
    return Scale(owner.uid, None, kind.group_resource if kind else f"{owner.apiVersion} {owner.kind}")


def _amount(value: intstr.IntOrString, total: int) -> int:
    """Return an absolute number, or a percentage of `total` rounded up."""
    if value.type == 0:
        return value.intVal
    text = value.strVal
    if not text.endswith("%") or not text[:-1].isdigit():
        raise SyncError("invalid value for IntOrString: invalid type: string is not a percentage")
    return -(-int(text[:-1]) * total // 100)


def _scale(pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]) -> int:
    """Return the sum of spec.replicas of the pods' controllers, without pods that have no controller."""
    replicas: dict[str, int] = {}
    for pod in pods:
        if controller_of(pod) is None:
            continue
        scale = scales.get(pod.metadata.uid)
        if scale is None:
            raise SyncError(f'found no controllers for pod "{pod.metadata.name}"')
        if scale.replicas is None:
            raise SyncError(f"{scale.resource} does not implement the scale subresource")
        replicas[scale.uid] = scale.replicas
    return sum(replicas.values())


def unmanaged_pods(budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod]) -> list[str]:
    """Return the names of pods without a controller, which a budget that needs scales cannot count."""
    spec = budget.spec
    if spec.HasField("maxUnavailable") or spec.minAvailable.type == 1:
        return [pod.metadata.name for pod in pods if controller_of(pod) is None]
    return []


def expected_and_desired(
    budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], scales: Mapping[str, Scale | None]
) -> tuple[int, int]:
    """Return (expectedPods, desiredHealthy).

    `scales` is by pod uid, None where the controller does not exist. Raises: SyncError for an unknown scale.
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
    """Return the evictions that were allowed and whose pods do not terminate yet."""
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
    """Return the pods whose eviction was allowed long ago, and that still run."""
    since = budget.status.disruptedPods
    return [
        pod
        for pod in pods
        if pod.metadata.name in since
        and not is_terminating(pod)
        and since[pod.metadata.name].seconds + EVICTION_SECONDS_MAX < now_seconds
    ]


def recheck_seconds(status: policy.PodDisruptionBudgetStatus, now_seconds: float) -> float | None:
    """Return after how many seconds the first allowed eviction is too old, None without any."""
    if not status.disruptedPods:
        return None
    oldest = min(since.seconds for since in status.disruptedPods.values())
    return max(oldest + EVICTION_SECONDS_MAX - now_seconds, 0.0) + 1.0


def _set_condition(
    status: policy.PodDisruptionBudgetStatus, value: str, reason: str, message: str, now: meta.Time
) -> None:
    row = meta.Condition(type=CONDITION, status=value, reason=reason, message=message)
    row.observedGeneration = status.observedGeneration
    set_condition(status.conditions, row, now)


def has_failed(budget: policy.PodDisruptionBudget) -> bool:
    """Report whether the budget could not be computed when its status was written."""
    row = get_condition(budget.status.conditions, CONDITION)
    return row is not None and row.reason == FAILED_REASON


def failed_status(
    budget: policy.PodDisruptionBudget, failure: str, now: meta.Time
) -> policy.PodDisruptionBudgetStatus:
    """Return the status of a budget that cannot be computed: it allows nothing, the rest stays as it was."""
    status = copy_of(budget.status)
    status.disruptionsAllowed = 0
    _set_condition(status, "False", FAILED_REASON, failure, now)
    return status


def status_of(
    budget: policy.PodDisruptionBudget,
    pods: Sequence[core.Pod],
    scales: Mapping[str, Scale | None],
    now: meta.Time,
) -> policy.PodDisruptionBudgetStatus:
    """Return the budget's status for the pods that it selects. Raises: SyncError (see `failed_status`)."""
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
        # No eviction is allowed without pods: the informer may be behind.
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
    """Return the seconds until a DisruptionTarget condition is stale, None without one.

    It is stale when the pod was not deleted within two minutes.
    """
    if is_terminating(pod) or has_ended(pod):
        return None
    target = get_condition(pod.status.conditions, "DisruptionTarget")
    if target is None or target.status != "True" or target.reason in KEPT_REASONS:
        return None
    return max(target.lastTransitionTime.seconds + EVICTION_SECONDS_MAX - now_seconds, 0.0)


def without_stale_disruption(pod: core.Pod, now: meta.Time) -> core.Pod | None:
    """Return the pod with DisruptionTarget=False, None where that changes nothing."""
    new = copy_of(pod)
    stale = core.PodCondition(
        type="DisruptionTarget", status="False", observedGeneration=pod.metadata.generation
    )
    return new if set_condition(new.status.conditions, stale, now) else None


def failure_event(failure: str) -> PlannedEvent:
    """Return the event of a budget that cannot be computed."""
    note = f"Failed to calculate the number of expected pods: {failure}"
    return PlannedEvent("CalculateExpectedPodCountFailed", note, "Warning")


def budget_events(budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod]) -> list[PlannedEvent]:
    """Return the events about a budget with a new status."""
    events = []
    if not pods:
        events.append(PlannedEvent("NoPods", "No matching pods found"))
    if unmanaged_pods(budget, pods):
        events.append(
            PlannedEvent("UnmanagedPods", _UNMANAGED.format(go_text(budget.spec.selector)), "Warning")
        )
    return events


def not_deleted_event(budget: policy.PodDisruptionBudget) -> PlannedEvent:
    """Return the event about a pod of `not_deleted`.

    Upstream writes the namespace twice, and not the budget's name (buildDisruptedPodMap, 1.36).
    """
    namespace = budget.metadata.namespace
    note = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
    return PlannedEvent("NotDeleted", note, "Warning")
