"""Deployments (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/deployment)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.apps.replicas import (
    collision_count,
    drop_terminating_replicas,
    immutable_selector,
    replica_counts,
    workload,
)
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, keep
from nominee.apiserver.kinds.template_strategy import TemplateStrategy
from nominee.apiserver.printing.cells import containers
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.values.int_or_percent import int_or_percent, is_zero, shown_value
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import shown_label_selector

_TYPES = ("Recreate", "RollingUpdate")
_COUNTS = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
    "unavailableReplicas", "terminatingReplicas", "collisionCount",
)  # fmt: skip


class DeploymentStrategy(TemplateStrategy[apps.Deployment]):
    """The main resource."""

    def prepare_for_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # Annotations are copied to the replica sets: a change of them is something to do.
        if new.metadata.annotations != old.metadata.annotations:
            new.metadata.generation = old.metadata.generation + 1


class DeploymentStatusStrategy(StatusStrategy[apps.Deployment]):
    """PUT of `status`, which keeps the labels."""

    reset_fields = ("spec", "metadata.labels")

    def drop_disabled(self, new: apps.Deployment, old: apps.Deployment | None, env: Environment) -> None:
        drop_terminating_replicas(new.status, old.status if old is not None else None, env.gates)

    def prepare_for_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        keep(new.metadata, old.metadata, "labels")

    def validate_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> list[Cause]:
        return [*super().validate_update(new, old, env), *_validate_status(new.status, old.status)]


def _validate(obj: apps.Deployment, old: apps.Deployment | None, options: PodOptions) -> Iterator[Cause]:
    spec = obj.spec
    yield from workload(spec, options)
    yield from _strategy(spec.strategy)
    yield from field.non_negative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
    if spec.HasField("progressDeadlineSeconds"):
        deadline = spec.progressDeadlineSeconds
        yield from field.non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.minReadySeconds:
            problem = "must be greater than minReadySeconds"
            yield field.invalid("spec.progressDeadlineSeconds", deadline, problem)
    if old is not None:
        yield from immutable_selector(spec, old.spec)


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
    return list(_rolling(f"{path}.rollingUpdate", found.rollingUpdate))


def _rolling_shown(found: apps.DeploymentStrategy) -> dict[str, object] | None:
    if not found.HasField("rollingUpdate"):
        return None
    rolling = found.rollingUpdate
    return {"MaxUnavailable": shown_value(rolling.maxUnavailable), "MaxSurge": shown_value(rolling.maxSurge)}


def _rolling(path: str, found: apps.RollingUpdateDeployment) -> Iterator[Cause]:
    yield from int_or_percent(f"{path}.maxUnavailable", found.maxUnavailable)
    # More than all may be added, though not taken away.
    yield from int_or_percent(f"{path}.maxSurge", found.maxSurge, limited=False)
    if is_zero(found.maxUnavailable) and is_zero(found.maxSurge):
        problem = "may not be 0 when `maxSurge` is 0"
        yield field.invalid(f"{path}.maxUnavailable", shown_value(found.maxUnavailable), problem)


def _validate_status(found: apps.DeploymentStatus, old: apps.DeploymentStatus) -> Iterator[Cause]:
    yield from replica_counts(found, _COUNTS, ("updatedReplicas", "readyReplicas", "availableReplicas"))
    yield from collision_count(found, old)


def _row(deployment: apps.Deployment, now: float) -> Cells:
    status = deployment.status
    return [
        f"{status.readyReplicas}/{deployment.spec.replicas}",
        status.updatedReplicas,
        status.availableReplicas,
        *containers(deployment.spec.template),
        shown_label_selector(deployment.spec.selector),
    ]


RULES = KindRules(
    kind=kinds.DEPLOYMENT,
    strategy=DeploymentStrategy(
        kinds.DEPLOYMENT, _validate, {"status": DeploymentStatusStrategy(kinds.DEPLOYMENT)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Ready", "Number of the pod with ready state"),
        Column("Up-to-date", "deploymentstatus-apps-v1#updatedReplicas"),
        Column("Available", "deploymentstatus-apps-v1#availableReplicas"),
        AGE,
        *CONTAINERS,
        wide("Selector", "deploymentspec-apps-v1#selector"),
    ),
)
