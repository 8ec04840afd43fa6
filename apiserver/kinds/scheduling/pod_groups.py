"""PodGroups (kube-apiserver 1.36, pkg/registry/scheduling/podgroup; KEP-4671)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.scheduling import pod_group_terms
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy, keep_metadata
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.apiserver.validation import declarative, field
from nominee.apiserver.validation.objects import conditions, metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import workloads
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec

PodGroup = workloads.PodGroup

_FIELDS = ("podGroupTemplateRef", *pod_group_terms.checks())


class PodGroupStrategy(Strategy[PodGroup]):
    """Nothing in a PodGroup's spec may change."""

    def drop_disabled(self, new: PodGroup, old: PodGroup | None, env: Environment) -> None:
        pod_group_terms.drop_disabled(new.spec, old.spec if old is not None else None, env.gates)

    def validate(self, new: PodGroup, env: Environment) -> list[Cause]:
        errors = self.validate_metadata(new)
        if new.spec.HasField("podGroupTemplateRef"):
            errors += _reference("spec.podGroupTemplateRef", new.spec.podGroupTemplateRef)
        return [*errors, *pod_group_terms.terms("spec", new.spec, env.gates)]

    def validate_update(self, new: PodGroup, old: PodGroup, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        return [*errors, *_changes(new.spec, old.spec, env.gates)]


class PodGroupStatusStrategy(StatusStrategy[PodGroup]):
    """PUT of `status`."""

    reset_fields = ("spec", "metadata")

    def prepare_for_update(self, new: PodGroup, old: PodGroup, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        keep_metadata(new, old)
        if not old.spec.resourceClaims:
            new.status.ClearField("resourceClaimStatuses")


def _validate_status(new: PodGroup, _old: PodGroup) -> Iterator[Cause]:
    return conditions.conditions("status.conditions", new.status.conditions)


def _reference(path: str, reference: workloads.PodGroupTemplateReference) -> list[Cause]:
    errors = declarative.union(path, reference, ("workload",))
    if not reference.HasField("workload"):
        return errors
    found = reference.workload
    at = f"{path}.workload.workloadName"
    errors += declarative.long_name(at, found.workloadName) if found.workloadName else [field.required(at)]
    at, name = f"{path}.workload.podGroupTemplateName", found.podGroupTemplateName
    return errors + (declarative.short_name(at, name) if name else [field.required(at)])


def _changes(new: workloads.PodGroupSpec, old: workloads.PodGroupSpec, gates: Gates) -> Iterator[Cause]:
    """Check that an update changes no immutable field, and no field whose gate is off."""
    after, before = codec.to_json(new), codec.to_json(old)
    for name in _FIELDS:
        value = after.get(name)
        if value == before.get(name):
            continue
        if value is not None and pod_group_terms.GATED.get(name) and not pod_group_terms.known(name, gates):
            yield field.forbidden(f"spec.{name}", "")
        else:
            yield declarative.immutable(f"spec.{name}", value)


RULES = KindRules(
    kind=kinds.POD_GROUP,
    strategy=PodGroupStrategy(
        kinds.POD_GROUP, {"status": PodGroupStatusStrategy(kinds.POD_GROUP, _validate_status)}
    ),
    columns=NAME_AND_CREATION,
)
