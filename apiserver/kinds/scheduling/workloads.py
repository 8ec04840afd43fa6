"""Workloads, the source of PodGroups (kube-apiserver 1.36, pkg/registry/scheduling/workload)."""

from __future__ import annotations

from functools import partial

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.scheduling import pod_group_terms
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.apiserver.validation import declarative, field
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.objects.typed_references import segment
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import workloads
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec

Workload = workloads.Workload

_TEMPLATES_MAX = 8


class WorkloadStrategy(Strategy[Workload]):
    """Nothing in a Workload's spec may change."""

    def drop_disabled(self, new: Workload, old: Workload | None, env: Environment) -> None:
        stored = list(old.spec.podGroupTemplates) if old is not None else []
        for index, template in enumerate(new.spec.podGroupTemplates):
            before = stored[index] if index < len(stored) else None
            pod_group_terms.drop_disabled(template, before, env.gates)

    def validate(self, new: Workload, env: Environment) -> list[Cause]:
        spec = new.spec
        errors = self.validate_metadata(new)
        if spec.HasField("controllerRef"):
            errors += _controller("spec.controllerRef", spec.controllerRef)
        path = "spec.podGroupTemplates"
        if not spec.podGroupTemplates:
            return [*errors, field.required(path)]
        check = partial(_template, env.gates)
        return [
            *errors,
            *declarative.items(
                path, spec.podGroupTemplates, _TEMPLATES_MAX, check, key=lambda template: template.name
            ),
        ]

    def validate_update(self, new: Workload, old: Workload, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        after, before = codec.to_json(new.spec), codec.to_json(old.spec)
        return errors + [
            declarative.immutable(f"spec.{name}", after.get(name))
            for name in ("controllerRef", "podGroupTemplates")
            if after.get(name) != before.get(name)
        ]


def _controller(path: str, reference: workloads.TypedLocalObjectReference) -> list[Cause]:
    errors = declarative.long_name(f"{path}.apiGroup", reference.apiGroup) if reference.apiGroup else []
    errors += segment(f"{path}.kind", reference.kind)
    return errors + segment(f"{path}.name", reference.name)


def _template(gates: Gates, path: str, template: workloads.PodGroupTemplate) -> list[Cause]:
    at = f"{path}.name"
    errors = declarative.short_name(at, template.name) if template.name else [field.required(at)]
    return [*errors, *pod_group_terms.terms(path, template, gates)]


RULES = KindRules(
    kind=kinds.WORKLOAD,
    strategy=WorkloadStrategy(kinds.WORKLOAD),
    columns=NAME_AND_CREATION,
)
