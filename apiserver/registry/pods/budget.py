"""The decision of a PodDisruptionBudget about one more eviction. Pure.

Source: kube-apiserver 1.36, checkAndDecrement.
"""

from __future__ import annotations

from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause, GroupResource, StatusError
from nominee.machinery.api.objects import copy_of, get_condition
from nominee.machinery.api.pb import meta, policy

DISRUPTED_PODS_MAX = 2000
RETRY_AFTER_SECONDS = 10
_RESOURCE = GroupResource("policy", "poddisruptionbudget")
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED_CONDITION = "DisruptionAllowed"


def _refused(text: str, retry_after_seconds: int = 0) -> StatusError:
    return errors.too_many_requests(
        _REFUSED, retry_after_seconds, causes=[Cause("DisruptionBudget", f"The disruption budget {text}")]
    )


def not_processed(name: str) -> StatusError:
    """Return the 429 for a budget whose newest generation the disruption controller has not processed."""
    return _refused(f"{name} is still being processed by the server.", RETRY_AFTER_SECONDS)


def spares_unready(budget: policy.PodDisruptionBudget) -> bool:
    """Report whether an unready pod may be evicted without counting as a disruption."""
    if budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow":
        return True
    status = budget.status
    return status.currentHealthy >= status.desiredHealthy > 0


def decremented(
    budget: policy.PodDisruptionBudget, pod_name: str, now: meta.Time
) -> policy.PodDisruptionBudget:
    """Return a copy of the budget with one disruption less and the pod in disruptedPods.

    Raises: StatusError 403, 429.
    """
    name, status = budget.metadata.name, budget.status
    if status.observedGeneration < budget.metadata.generation:
        raise not_processed(name)
    if status.disruptionsAllowed < 0:
        raise errors.forbidden(_RESOURCE, name, "pdb disruptions allowed is negative")
    if len(status.disruptedPods) > DISRUPTED_PODS_MAX:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden(_RESOURCE, name, problem)
    if status.disruptionsAllowed == 0:
        raise _refused(_why_not(budget))
    new = copy_of(budget)
    new.status.disruptionsAllowed -= 1
    if new.status.disruptionsAllowed == 0:
        _insufficient(new, now)
    new.status.disruptedPods[pod_name].CopyFrom(now)
    return new


def _why_not(budget: policy.PodDisruptionBudget) -> str:
    name, status = budget.metadata.name, budget.status
    condition = get_condition(status.conditions, _ALLOWED_CONDITION)
    if condition is not None and (condition.status != "False" or not condition.message):
        condition = None
    if condition is not None and condition.reason == "SyncFailed":
        # First, since the counts are meaningless then.
        return f"{name} does not allow evicting pods currently because it failed sync: {condition.message}"
    if status.currentHealthy <= status.desiredHealthy:
        return f"{name} needs {status.desiredHealthy} healthy pods and has {status.currentHealthy} currently"
    if condition is not None:
        return f"{name} does not allow evicting pods currently ({condition.reason}): {condition.message}"
    return f"{name} does not allow evicting pods currently"


def _insufficient(budget: policy.PodDisruptionBudget, now: meta.Time) -> None:
    """Set the condition of a budget that allows no further disruption."""
    status = budget.status
    condition = get_condition(status.conditions, _ALLOWED_CONDITION)
    if condition is None:
        condition = status.conditions.add(type=_ALLOWED_CONDITION)
    if condition.status != "False":
        condition.status = "False"
        condition.lastTransitionTime.CopyFrom(now)
    condition.reason = "InsufficientPods"
    condition.observedGeneration = status.observedGeneration
