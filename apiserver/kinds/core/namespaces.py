"""Namespaces: two kinds of finalizers (kube-apiserver 1.36, registry/core/namespace)."""

from __future__ import annotations

from dataclasses import replace

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy, keep
from nominee.apiserver.objects.selectable_fields import selectable
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.defaults import NAMESPACE_NAME_LABEL

CONTENT_FINALIZER = "kubernetes"
"""In spec.finalizers: what is in the namespace is still to be deleted."""


class NamespaceStrategy(Strategy[core.Namespace]):
    """The main resource."""

    def name_rule(self, name: str) -> names.Problems:
        return names.dns_label(name)

    def prepare_for_create(self, new: core.Namespace, env: Environment) -> None:
        # A generated name was not there when defaults were set.
        new.metadata.labels[NAMESPACE_NAME_LABEL] = new.metadata.name
        new.ClearField("status")
        new.status.phase = "Active"
        if CONTENT_FINALIZER not in new.spec.finalizers:
            new.spec.finalizers.append(CONTENT_FINALIZER)

    def validate(self, new: core.Namespace, env: Environment) -> list[Cause]:
        causes = self.validate_metadata(new)
        at = "spec.finalizers"
        for name in new.spec.finalizers:
            causes += metadata.finalizers(at, [name]) + _standard(at, name)
        return causes

    def prepare_for_update(self, new: core.Namespace, old: core.Namespace, env: Environment) -> None:
        keep(new, old, "status")
        keep(new, old, "spec")

    def deleted_by_update(self, new: core.Namespace, old: core.Namespace) -> bool:
        return not new.spec.finalizers and super().deleted_by_update(new, old)


class NamespaceStatusStrategy(StatusStrategy[core.Namespace]):
    """PUT of `status`: the phase follows from whether it is being deleted."""

    def deleted_by_update(self, new: core.Namespace, old: core.Namespace) -> bool:
        return not new.spec.finalizers and super().deleted_by_update(new, old)

    def validate_update(self, new: core.Namespace, old: core.Namespace, env: Environment) -> list[Cause]:
        causes = metadata.object_meta_update(new.metadata, old.metadata)
        phase = new.status.phase
        if not new.metadata.HasField("deletionTimestamp"):
            if phase != "Active":
                problem = "may only be 'Active' if `deletionTimestamp` is empty"
                causes.append(field.invalid("status.Phase", phase, problem))
        elif phase != "Terminating":
            problem = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            causes.append(field.invalid("status.Phase", phase, problem))
        return causes


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """PUT of `finalize`: spec.finalizers only."""

    reset_fields = ("status",)

    def prepare_for_update(self, new: core.Namespace, old: core.Namespace, env: Environment) -> None:
        keep(new, old, "status")

    def validate_update(self, new: core.Namespace, old: core.Namespace, env: Environment) -> list[Cause]:
        causes = metadata.object_meta_update(new.metadata, old.metadata)
        for index, name in enumerate(new.spec.finalizers):
            at = f"spec.finalizers[{index}]"
            causes += field.check(at, name, names.qualified_name)
            causes += _standard(at, name)
        return causes


def _standard(path: str, name: str) -> list[Cause]:
    """Upstream judges each finalizer alone, and puts no index to the first."""
    return [replace(cause, field=path) for cause in metadata.standard_finalizers(path, [name])]


def _fields(namespace: core.Namespace) -> dict[str, str]:
    return {"metadata.name": namespace.metadata.name, "status.phase": namespace.status.phase}


def _row(namespace: core.Namespace, now: float) -> Cells:
    return [namespace.status.phase]


RULES = KindRules(
    kind=kinds.NAMESPACE,
    strategy=NamespaceStrategy(
        kinds.NAMESPACE,
        {
            "status": NamespaceStatusStrategy(kinds.NAMESPACE),
            "finalize": NamespaceFinalizeStrategy(kinds.NAMESPACE),
        },
    ),
    columns=Columns(_row, NAME, Column("Status", "The status of the namespace"), AGE),
    fields=selectable(core.Namespace, _fields),
    delete_response=DeleteResponse.OBJECT,
    read_your_write=True,
    has_content=True,
)
