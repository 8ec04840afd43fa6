"""StatefulSets (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/statefulset)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.apps.replicas import collision_count, replica_counts
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.printing.cells import containers
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods.warnings import workload_warnings
from nominee.apiserver.validation.values.int_or_percent import int_or_percent, is_zero
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps

_RETENTION = ("Retain", "Delete")
_MUTABLE = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds")  # fmt: skip
_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


def _validate(obj: apps.StatefulSet) -> list[Cause]:
    spec = obj.spec
    errors: list[Cause] = []
    if not spec.podManagementPolicy:
        errors.append(field.required("spec.podManagementPolicy"))
    elif spec.podManagementPolicy not in ("OrderedReady", "Parallel"):
        problem = "must be 'OrderedReady' or 'Parallel'"
        errors.append(field.invalid("spec.podManagementPolicy", spec.podManagementPolicy, problem))
    errors += _strategy("spec.updateStrategy", spec.updateStrategy)
    errors += _retention("spec.persistentVolumeClaimRetentionPolicy", spec)
    errors += field.non_negative("spec.replicas", spec.replicas)
    errors += field.non_negative("spec.minReadySeconds", spec.minReadySeconds)
    errors += field.non_negative("spec.ordinals.start", spec.ordinals.start)
    errors += templates.check_selector(
        spec.selector if spec.HasField("selector") else None,
        spec.template.metadata.labels,
        "empty selector is invalid for statefulset",
        required=True,
    )
    # Upstream leaves the rest of the template to the pods: mounts name volumes that are yet to be made.
    errors += templates.labels_of("spec.template", spec.template)
    return [*errors, *templates.always_restarts("spec.template", spec.template, "StatefulSet")]


def _strategy(path: str, strategy: apps.StatefulSetUpdateStrategy) -> list[Cause]:
    rolling = strategy.rollingUpdate
    if not strategy.type:
        return [field.required(path)]
    if strategy.type == "OnDelete":
        if not strategy.HasField("rollingUpdate"):
            return []
        problem = "only allowed for updateStrategy 'RollingUpdate'"
        return [field.invalid(f"{path}.rollingUpdate", dump(rolling), problem)]
    if strategy.type != "RollingUpdate":
        return [field.invalid(path, dump(strategy), "must be 'RollingUpdate' or 'OnDelete'")]
    errors = field.non_negative(f"{path}.rollingUpdate.partition", rolling.partition)
    if rolling.HasField("maxUnavailable"):
        at, most = f"{path}.rollingUpdate.maxUnavailable", rolling.maxUnavailable
        errors += int_or_percent(at, most)
        if is_zero(most):
            errors.append(field.invalid(at, most.intVal if most.type == 0 else most.strVal, "cannot be 0"))
    return errors


def _retention(path: str, spec: apps.StatefulSetSpec) -> list[Cause]:
    policy = spec.persistentVolumeClaimRetentionPolicy
    return [
        field.not_supported(f"{path}.{name}", value, _RETENTION)
        for name, value in (("whenDeleted", policy.whenDeleted), ("whenScaled", policy.whenScaled))
        if value not in _RETENTION
    ]


def _validate_change(new: apps.StatefulSet, old: apps.StatefulSet) -> list[Cause]:
    specs = []
    for each in (new, old):
        spec = copy_of(each.spec)
        for name in _MUTABLE:
            spec.ClearField(name)
        specs.append(spec)
    return [] if specs[0] == specs[1] else [field.forbidden("spec", _FORBIDDEN)]


def _validate_status(new: apps.StatefulSet, old: apps.StatefulSet) -> Iterator[Cause]:
    counts = (*_COUNTS, "observedGeneration", "collisionCount")
    yield from replica_counts(new.status, counts, _COUNTS[1:], ready="status.readyReplicas")
    yield from collision_count(new.status, old.status)


def _warnings(new: apps.StatefulSet, old: apps.StatefulSet | None) -> Iterator[str]:
    yield from workload_warnings(new, old)
    if new.spec.HasField("revisionHistoryLimit") and new.spec.revisionHistoryLimit < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is"
            " recommended"
        )


def _row(obj: apps.StatefulSet, now: float) -> Cells:
    ready = f"{obj.status.readyReplicas}/{obj.spec.replicas}"
    return [ready, *containers(obj.spec.template)]


class StatefulSetStrategy(SimpleStrategy[apps.StatefulSet]):
    """The main resource."""

    def drop_disabled(self, new: apps.StatefulSet, old: apps.StatefulSet | None, env: Environment) -> None:
        rolling = new.spec.updateStrategy.rollingUpdate
        known = env.gates.enabled("MaxUnavailableStatefulSet")
        known = known or (
            old is not None and old.spec.updateStrategy.rollingUpdate.HasField("maxUnavailable")
        )
        if not known and rolling.HasField("maxUnavailable"):
            rolling.ClearField("maxUnavailable")


RULES = KindRules(
    kind=kinds.STATEFUL_SET,
    strategy=StatefulSetStrategy(
        kinds.STATEFUL_SET,
        _validate,
        _validate_change,
        status=_validate_status,
        warnings=_warnings,
        counts_generation=True,
    ),
    columns=Columns(_row, NAME, Column("Ready", "Number of the pod with ready state"), AGE, *CONTAINERS),
)
