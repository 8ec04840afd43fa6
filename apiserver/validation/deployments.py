"""Deployments (kube-apiserver 1.36, pkg/apis/apps/validation)."""

from __future__ import annotations

from typing import Any

from apiserver.validation import field, replica_sets
from apiserver.validation.budgets import int_or_percent, is_zero
from apiserver.validation.pod_options import PodOptions
from machinery.api.errors import Cause
from machinery.api.pb import apps, intstr

_TYPES = ("Recreate", "RollingUpdate")
_INT = 0


def spec(found: apps.DeploymentSpec, options: PodOptions) -> list[Cause]:
    """The spec."""
    errors = replica_sets.workload(found, options)
    errors += _strategy(found.strategy)
    if found.HasField("revisionHistoryLimit"):
        errors += field.non_negative("spec.revisionHistoryLimit", found.revisionHistoryLimit)
    if found.HasField("progressDeadlineSeconds"):
        deadline = found.progressDeadlineSeconds
        errors += field.non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= found.minReadySeconds:
            problem = "must be greater than minReadySeconds"
            errors.append(field.invalid("spec.progressDeadlineSeconds", deadline, problem))
    return errors


def _strategy(found: apps.DeploymentStrategy) -> list[Cause]:
    path = "spec.strategy"
    if found.type == "Recreate":
        if found.HasField("rollingUpdate"):
            problem = "may not be specified when strategy `type` is 'Recreate'"
            return [field.forbidden(f"{path}.rollingUpdate", problem)]
        return []
    if found.type != "RollingUpdate":
        shown = {"Type": found.type, "RollingUpdate": _rolling_shown(found)}
        return [field.not_supported(path, shown, _TYPES)]
    if not found.HasField("rollingUpdate"):
        return [field.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    return _rolling(f"{path}.rollingUpdate", found.rollingUpdate)


def _rolling_shown(found: apps.DeploymentStrategy) -> dict[str, Any] | None:
    if not found.HasField("rollingUpdate"):
        return None
    rolling = found.rollingUpdate
    return {"MaxUnavailable": _number(rolling.maxUnavailable), "MaxSurge": _number(rolling.maxSurge)}


def _number(value: intstr.IntOrString) -> Any:
    return value.intVal if value.type == _INT else value.strVal


def _rolling(path: str, found: apps.RollingUpdateDeployment) -> list[Cause]:
    errors = int_or_percent(f"{path}.maxUnavailable", found.maxUnavailable)
    # More than all may be added, though not taken away.
    errors += int_or_percent(f"{path}.maxSurge", found.maxSurge, most=False)
    if is_zero(found.maxUnavailable) and is_zero(found.maxSurge):
        problem = "may not be 0 when `maxSurge` is 0"
        errors.append(field.invalid(f"{path}.maxUnavailable", _number(found.maxUnavailable), problem))
    return errors


def status(found: apps.DeploymentStatus, old: apps.DeploymentStatus) -> list[Cause]:
    """The status; collisions are only ever counted up."""
    errors: list[Cause] = []
    counted = (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    )
    for name in counted:
        errors += field.non_negative(f"status.{name}", getattr(found, name))
    for name in ("terminatingReplicas", "collisionCount"):
        if found.HasField(name):
            errors += field.non_negative(f"status.{name}", getattr(found, name))
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if getattr(found, name) > found.replicas:
            problem = "cannot be greater than status.replicas"
            errors.append(field.invalid(f"status.{name}", getattr(found, name), problem))
    if found.availableReplicas > found.readyReplicas:
        problem = "cannot be greater than readyReplicas"
        errors.append(field.invalid("status.availableReplicas", found.availableReplicas, problem))
    if old.HasField("collisionCount") and found.collisionCount < old.collisionCount:
        errors.append(field.invalid("status.collisionCount", found.collisionCount, "cannot be decremented"))
    return errors
