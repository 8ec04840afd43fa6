"""ReplicaSets (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/replicaset)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.apps.replicas import drop_terminating_replicas, immutable_selector, workload
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import containers
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation import metadata as metadata_rules
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods.warnings import workload_warnings
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import shown_label_selector


class ReplicaSetStrategy(Strategy[apps.ReplicaSet]):
    """The main resource."""

    counts_generation = True

    def warnings(self, new: apps.ReplicaSet, old: apps.ReplicaSet | None) -> Sequence[str]:
        return workload_warnings(new, old)

    def validate(self, new: apps.ReplicaSet, env: Environment) -> list[Cause]:
        return [*self.validate_metadata(new), *workload(new.spec, pod_options.of(env.gates))]

    def validate_update(self, new: apps.ReplicaSet, old: apps.ReplicaSet, env: Environment) -> list[Cause]:
        return [
            *metadata_rules.object_meta_update(new.metadata, old.metadata),
            *workload(new.spec, pod_options.of(env.gates, old.spec.template.spec)),
            *immutable_selector(new.spec, old.spec),
        ]


class ReplicaSetStatusStrategy(StatusStrategy[apps.ReplicaSet]):
    """PUT of `status`."""

    def drop_disabled(self, new: apps.ReplicaSet, old: apps.ReplicaSet | None, env: Environment) -> None:
        drop_terminating_replicas(new.status, old.status if old is not None else None, env.gates)

    def validate_update(self, new: apps.ReplicaSet, old: apps.ReplicaSet, env: Environment) -> list[Cause]:
        return [*metadata_rules.object_meta_update(new.metadata, old.metadata), *_validate_status(new.status)]


def _validate_status(found: apps.ReplicaSetStatus) -> Iterator[Cause]:
    counted = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
    for name in counted:
        yield from field.non_negative(f"status.{name}", getattr(found, name))
    if found.HasField("terminatingReplicas"):
        yield from field.non_negative("status.terminatingReplicas", found.terminatingReplicas)
    for name in counted[1:4]:
        if getattr(found, name) > found.replicas:
            problem = "cannot be greater than status.replicas"
            yield field.invalid(f"status.{name}", getattr(found, name), problem)
    if found.availableReplicas > found.readyReplicas:
        problem = "cannot be greater than readyReplicas"
        yield field.invalid("status.availableReplicas", found.availableReplicas, problem)


def _row(replicas: apps.ReplicaSet, now: float) -> Cells:
    status = replicas.status
    counts = [replicas.spec.replicas, status.replicas, status.readyReplicas]
    return [
        *counts,
        *containers(replicas.spec.template),
        shown_label_selector(replicas.spec.selector),
    ]


RULES = KindRules(
    kind=kinds.REPLICA_SET,
    strategy=ReplicaSetStrategy(kinds.REPLICA_SET, {"status": ReplicaSetStatusStrategy(kinds.REPLICA_SET)}),
    columns=Columns(
        _row,
        NAME,
        Column("Desired", "replicasetspec-apps-v1#replicas", "integer"),
        Column("Current", "replicasetstatus-apps-v1#replicas", "integer"),
        Column("Ready", "replicasetstatus-apps-v1#readyReplicas", "integer"),
        AGE,
        wide("Containers", "Names of each container in the template."),
        wide("Images", "Images referenced by each container in the template."),
        wide("Selector", "replicasetspec-apps-v1#selector"),
    ),
)
