"""Deployments (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/deployment)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.apps.replicas import drop_terminating_replicas, immutable_selector, workload
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy, keep
from nominee.apiserver.printing.cells import containers
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation import metadata as metadata_rules
from nominee.apiserver.validation.int_or_percent import int_or_percent, is_zero, shown_value
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.pods.warnings import workload_warnings
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import shown_label_selector

_TYPES = ("Recreate", "RollingUpdate")


class DeploymentStrategy(Strategy[apps.Deployment]):
    """The main resource."""

    counts_generation = True

    def warnings(self, new: apps.Deployment, old: apps.Deployment | None) -> Sequence[str]:
        return workload_warnings(new, old)

    def validate(self, new: apps.Deployment, env: Environment) -> list[Cause]:
        return [*self.validate_metadata(new), *_validate_spec(new.spec, pod_options.of(env.gates))]

    def prepare_for_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # Annotations are copied to the replica sets: a change of them is something to do.
        if new.metadata.annotations != old.metadata.annotations:
            new.metadata.generation = old.metadata.generation + 1

    def validate_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> list[Cause]:
        return [
            *metadata_rules.object_meta_update(new.metadata, old.metadata),
            *_validate_spec(new.spec, pod_options.of(env.gates, old.spec.template.spec)),
            *immutable_selector(new.spec, old.spec),
        ]


class DeploymentStatusStrategy(StatusStrategy[apps.Deployment]):
    """PUT of `status`, which keeps the labels."""

    @property
    def reset_fields(self) -> tuple[str, ...]:
        return ("spec", "metadata.labels")

    def drop_disabled(self, new: apps.Deployment, old: apps.Deployment | None, env: Environment) -> None:
        drop_terminating_replicas(new.status, old.status if old is not None else None, env.gates)

    def prepare_for_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        keep(new.metadata, old.metadata, "labels")

    def validate_update(self, new: apps.Deployment, old: apps.Deployment, env: Environment) -> list[Cause]:
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata)
        return [*changed, *_validate_status(new.status, old.status)]


def _validate_spec(found: apps.DeploymentSpec, options: PodOptions) -> Iterator[Cause]:
    """The spec."""
    yield from workload(found, options)
    yield from _strategy(found.strategy)
    if found.HasField("revisionHistoryLimit"):
        yield from field.non_negative("spec.revisionHistoryLimit", found.revisionHistoryLimit)
    if found.HasField("progressDeadlineSeconds"):
        deadline = found.progressDeadlineSeconds
        yield from field.non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= found.minReadySeconds:
            problem = "must be greater than minReadySeconds"
            yield field.invalid("spec.progressDeadlineSeconds", deadline, problem)


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
    """The status; collisions are only ever counted up."""
    counted = (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    )
    for name in counted:
        yield from field.non_negative(f"status.{name}", getattr(found, name))
    for name in ("terminatingReplicas", "collisionCount"):
        if found.HasField(name):
            yield from field.non_negative(f"status.{name}", getattr(found, name))
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if getattr(found, name) > found.replicas:
            problem = "cannot be greater than status.replicas"
            yield field.invalid(f"status.{name}", getattr(found, name), problem)
    if found.availableReplicas > found.readyReplicas:
        problem = "cannot be greater than readyReplicas"
        yield field.invalid("status.availableReplicas", found.availableReplicas, problem)
    if old.HasField("collisionCount") and found.collisionCount < old.collisionCount:
        yield field.invalid("status.collisionCount", found.collisionCount, "cannot be decremented")


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
    strategy=DeploymentStrategy(kinds.DEPLOYMENT, {"status": DeploymentStatusStrategy(kinds.DEPLOYMENT)}),
    columns=Columns(
        _row,
        NAME,
        Column("Ready", "Number of the pod with ready state"),
        Column("Up-to-date", "deploymentstatus-apps-v1#updatedReplicas"),
        Column("Available", "deploymentstatus-apps-v1#availableReplicas"),
        AGE,
        wide("Containers", "Names of each container in the template."),
        wide("Images", "Images referenced by each container in the template."),
        wide("Selector", "deploymentspec-apps-v1#selector"),
    ),
)
