"""ReplicaSets (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/replicaset)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.apps.replicas import (
    drop_terminating_replicas,
    immutable_selector,
    replica_counts,
    workload,
)
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy
from nominee.apiserver.kinds.template_strategy import TemplateStrategy
from nominee.apiserver.printing.cells import containers
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import shown_label_selector

_COUNTS = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
    "terminatingReplicas",
)  # fmt: skip


class ReplicaSetStatusStrategy(StatusStrategy[apps.ReplicaSet]):
    """PUT of `status`."""

    def drop_disabled(self, new: apps.ReplicaSet, old: apps.ReplicaSet | None, env: Environment) -> None:
        drop_terminating_replicas(new.status, old.status if old is not None else None, env.gates)

    def validate_update(self, new: apps.ReplicaSet, old: apps.ReplicaSet, env: Environment) -> list[Cause]:
        counts = replica_counts(new.status, _COUNTS, _COUNTS[1:4])
        return [*super().validate_update(new, old, env), *counts]


def _validate(obj: apps.ReplicaSet, old: apps.ReplicaSet | None, options: PodOptions) -> Iterator[Cause]:
    yield from workload(obj.spec, options)
    if old is not None:
        yield from immutable_selector(obj.spec, old.spec)


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
    strategy=TemplateStrategy(
        kinds.REPLICA_SET, _validate, {"status": ReplicaSetStatusStrategy(kinds.REPLICA_SET)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Desired", "replicasetspec-apps-v1#replicas", "integer"),
        Column("Current", "replicasetstatus-apps-v1#replicas", "integer"),
        Column("Ready", "replicasetstatus-apps-v1#readyReplicas", "integer"),
        AGE,
        *CONTAINERS,
        wide("Selector", "replicasetspec-apps-v1#selector"),
    ),
)
