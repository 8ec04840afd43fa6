"""A deployment's status and its conditions Available, Progressing and ReplicaFailure. Pure.

Source: kube-controller-manager 1.36, pkg/controller/deployment (sync.go, progress.go) and its util.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nominee.controllers.deployments.sizes import total_replicas, unavailable_max
from nominee.machinery.api.objects import get_condition, remove_condition
from nominee.machinery.api.pb import apps
from nominee.machinery.runtime.clock import to_time

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
CREATE_ERROR: Final = "ReplicaSetCreateError"
PAUSED: Final = "DeploymentPaused"
_NO_DEADLINE: Final = 2**31 - 1


def has_deadline(deployment: apps.Deployment) -> bool:
    spec = deployment.spec
    return spec.HasField("progressDeadlineSeconds") and spec.progressDeadlineSeconds != _NO_DEADLINE


def condition(type_: str, status: str, reason: str, message: str, now: float) -> apps.DeploymentCondition:
    """Return a condition that changed at `now`, in seconds since the epoch."""
    return apps.DeploymentCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        lastUpdateTime=to_time(now),
        lastTransitionTime=to_time(now),
    )


def put(status: apps.DeploymentStatus, new: apps.DeploymentCondition) -> bool:
    """Add or replace a condition, at the end; return False for one of the same status and reason.

    That one stays as it is.
    """
    old = get_condition(status.conditions, new.type)
    if old is not None:
        if (old.status, old.reason) == (new.status, new.reason):
            return False
        if old.status == new.status:
            new.lastTransitionTime.CopyFrom(old.lastTransitionTime)
        remove_condition(status.conditions, new.type)
    status.conditions.append(new)
    return True


def is_complete(deployment: apps.Deployment, status: apps.DeploymentStatus) -> bool:
    """Report whether all replicas have the new template and are available, and no old one is left."""
    size = deployment.spec.replicas
    return (
        status.updatedReplicas == size
        and status.replicas == size
        and status.availableReplicas == size
        and status.observedGeneration >= deployment.metadata.generation
    )


def _progressed(old: apps.DeploymentStatus, new: apps.DeploymentStatus) -> bool:
    return (
        new.updatedReplicas > old.updatedReplicas
        or new.replicas - new.updatedReplicas < old.replicas - old.updatedReplicas
        or new.readyReplicas > old.readyReplicas
        or new.availableReplicas > old.availableReplicas
    )


def _timed_out(deployment: apps.Deployment, status: apps.DeploymentStatus, now: float) -> bool:
    found = get_condition(status.conditions, PROGRESSING)
    if found is None or found.reason == COMPLETE:
        return False
    if found.reason == TIMED_OUT:
        return True
    return found.lastUpdateTime.seconds + deployment.spec.progressDeadlineSeconds < now


def count_replicas(
    deployment: apps.Deployment,
    sets: Sequence[apps.ReplicaSet],
    new: apps.ReplicaSet | None,
    now: float,
    *,
    terminating: bool,
) -> apps.DeploymentStatus:
    """Return the sum of the sets' statuses, with Available; the other conditions as they were.

    `terminating`: whether terminating pods are counted (DeploymentReplicaSetTerminatingReplicas).
    """
    status = apps.DeploymentStatus()
    old = deployment.status
    status.observedGeneration = deployment.metadata.generation
    status.replicas = sum(each.status.replicas for each in sets)
    status.updatedReplicas = new.status.replicas if new is not None else 0
    status.readyReplicas = sum(each.status.readyReplicas for each in sets)
    status.availableReplicas = sum(each.status.availableReplicas for each in sets)
    status.unavailableReplicas = max(total_replicas(sets) - status.availableReplicas, 0)
    if old.HasField("collisionCount"):
        status.collisionCount = old.collisionCount
    if terminating and all(each.status.HasField("terminatingReplicas") for each in sets):
        status.terminatingReplicas = sum(each.status.terminatingReplicas for each in sets)
    status.conditions.extend(old.conditions)
    if status.availableReplicas >= deployment.spec.replicas - unavailable_max(deployment):
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
        put(status, condition(AVAILABLE, "True", reason, message, now))
    else:
        reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        put(status, condition(AVAILABLE, "False", reason, message, now))
    return status


def judge(
    deployment: apps.Deployment,
    sets: Sequence[apps.ReplicaSet],
    new: apps.ReplicaSet | None,
    status: apps.DeploymentStatus,
    now: float,
) -> None:
    """Set Progressing and ReplicaFailure in `status` during a rollout."""
    if not has_deadline(deployment):
        remove_condition(status.conditions, PROGRESSING)
    current = get_condition(deployment.status.conditions, PROGRESSING)
    done = status.replicas == status.updatedReplicas and current is not None and current.reason == COMPLETE
    if has_deadline(deployment) and not done:
        _judge_progress(deployment, new, status, now)
    failures = _failures(sets, new)
    if failures:
        put(status, failures[0])
    else:
        remove_condition(status.conditions, REPLICA_FAILURE)


def _judge_progress(
    deployment: apps.Deployment, new: apps.ReplicaSet | None, status: apps.DeploymentStatus, now: float
) -> None:
    what = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        message = f"{what} has successfully progressed."
        put(status, condition(PROGRESSING, "True", COMPLETE, message, now))
    elif _progressed(deployment.status, status):
        row = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.", now)
        current = get_condition(deployment.status.conditions, PROGRESSING)
        if current is not None:
            if current.status == "True":
                row.lastTransitionTime.CopyFrom(current.lastTransitionTime)
            # Renewed even if it is equal: the deadline runs from lastUpdateTime.
            remove_condition(status.conditions, PROGRESSING)
        put(status, row)
    elif _timed_out(deployment, status, now):
        message = f"{what} has timed out progressing."
        put(status, condition(PROGRESSING, "False", TIMED_OUT, message, now))


def _failures(sets: Sequence[apps.ReplicaSet], new: apps.ReplicaSet | None) -> list[apps.DeploymentCondition]:
    """Return the conditions that say why sets create no pods; the new set's comes first."""
    ordered = ([new] if new is not None else []) + [each for each in sets if each is not new]
    return [
        apps.DeploymentCondition(
            type=REPLICA_FAILURE,
            status=row.status,
            reason=row.reason,
            message=row.message,
            lastUpdateTime=row.lastTransitionTime,
            lastTransitionTime=row.lastTransitionTime,
        )
        for each in ordered
        for row in each.status.conditions
        if row.type == REPLICA_FAILURE and row.status == "True"
    ]


def note_pause(deployment: apps.Deployment, now: float) -> bool:
    """Report in Progressing that the rollout is paused or resumed; return whether that changed.

    The deadline does not run while it is paused; a rollout that already failed stays failed.
    """
    if not has_deadline(deployment):
        return False
    current = get_condition(deployment.status.conditions, PROGRESSING)
    if current is not None and current.reason == TIMED_OUT:
        return False
    is_noted = current is not None and current.reason == PAUSED
    if deployment.spec.paused and not is_noted:
        row = condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    elif not deployment.spec.paused and is_noted:
        row = condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    else:
        return False
    return put(deployment.status, row)


def stuck_check_seconds(
    deployment: apps.Deployment, status: apps.DeploymentStatus, now: float
) -> float | None:
    """Return after how many seconds the deadline must be checked, None where there is nothing to wait for."""
    current = get_condition(deployment.status.conditions, PROGRESSING)
    if not has_deadline(deployment) or current is None:
        return None
    if is_complete(deployment, status) or current.reason in (TIMED_OUT, COMPLETE):
        return None
    left = current.lastUpdateTime.seconds + deployment.spec.progressDeadlineSeconds - now
    return max(left, 0.0) + 1.0
