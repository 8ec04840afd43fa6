"""ReplicationControllers (kube-apiserver 1.36, ValidateReplicationController; registry/core)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.apps.replicas import replica_counts
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import StatusStrategy
from nominee.apiserver.kinds.template_strategy import TemplateStrategy
from nominee.apiserver.objects.selectable_fields import metadata_fields, selectable
from nominee.apiserver.printing.cells import containers, labels
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def _validate(
    obj: core.ReplicationController, old: core.ReplicationController | None, options: PodOptions
) -> list[Cause]:
    spec = obj.spec
    errors = field.non_negative("spec.minReadySeconds", spec.minReadySeconds)
    if not spec.selector:
        errors.append(field.required("spec.selector"))
    errors += field.non_negative("spec.replicas", spec.replicas)
    path = "spec.template"
    if not spec.HasField("template"):
        return [*errors, field.required(path)]
    labels = spec.template.metadata.labels
    if any(labels.get(key) != value for key, value in spec.selector.items()):
        problem = "`selector` does not match template `labels`"
        value = dict(sorted(labels.items())) if labels else None
        errors.append(field.invalid(f"{path}.metadata.labels", value, problem))
    errors += templates.pod_template(path, spec.template, options)
    return [*errors, *templates.always_restarts(path, spec.template, "ReplicationController")]


def _validate_status(new: core.ReplicationController, old: core.ReplicationController) -> Iterator[Cause]:
    return replica_counts(new.status, _COUNTS, _COUNTS[1:4])


def _fields(controller: core.ReplicationController) -> dict[str, str]:
    return metadata_fields(controller) | {"status.replicas": str(controller.status.replicas)}


def _row(obj: core.ReplicationController, now: float) -> Cells:
    counts = [obj.spec.replicas, obj.status.replicas, obj.status.readyReplicas]
    return [*counts, *containers(obj.spec.template), labels(obj.spec.selector)]


class ReplicationControllerStrategy(TemplateStrategy[core.ReplicationController]):
    """The main resource."""

    orphans_dependents = True


RULES = KindRules(
    kind=kinds.REPLICATION_CONTROLLER,
    strategy=ReplicationControllerStrategy(
        kinds.REPLICATION_CONTROLLER,
        _validate,
        {"status": StatusStrategy(kinds.REPLICATION_CONTROLLER, _validate_status)},
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Desired", "replicationcontrollerspec-v1#replicas", "integer"),
        Column("Current", "replicationcontrollerstatus-v1#replicas", "integer"),
        Column("Ready", "replicationcontrollerstatus-v1#readyReplicas", "integer"),
        AGE,
        *CONTAINERS,
        wide("Selector", "replicationcontrollerspec-v1#selector"),
    ),
    fields=selectable(core.ReplicationController, _fields),
)
