"""Namespaces: two kinds of finalizers, and a deletion that a controller finishes (kube-apiserver 1.36)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.objects.cached_object import CachedObject
from apiserver.registry.deletion import (
    Deletion,
    check_preconditions,
    copy,
    garbage_finalizers,
    validate_options,
)
from apiserver.registry.store import Preconditions, Store
from apiserver.registry.strategy import Environment, StatusStrategy, Strategy, keep
from apiserver.validation import field, metadata, names
from machinery.api.errors import Cause
from machinery.api.kinds import NAMESPACE
from machinery.api.pb import core, meta

CONTENT_FINALIZER = "kubernetes"
"""In spec.finalizers: what is in the namespace is still to be deleted."""


class NamespaceStrategy(Strategy):
    """The main resource."""

    def name_rule(self, name: str) -> names.Problems:
        return names.dns_label(name)

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        new.ClearField("status")
        new.status.phase = "Active"
        if CONTENT_FINALIZER not in new.spec.finalizers:
            new.spec.finalizers.append(CONTENT_FINALIZER)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        causes = self.validate_metadata(new)
        at = "spec.finalizers"
        for name in new.spec.finalizers:
            causes += metadata.finalizers(at, [name]) + _standard(at, name)
        return causes

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        keep(new, old, "status")
        keep(new, old, "spec")

    def deleted_by_update(self, new: Any, old: Any) -> bool:
        return not new.spec.finalizers and super().deleted_by_update(new, old)


class NamespaceStatusStrategy(StatusStrategy):
    """PUT of `status`: the phase follows from whether it is being deleted."""

    def deleted_by_update(self, new: Any, old: Any) -> bool:
        return not new.spec.finalizers and super().deleted_by_update(new, old)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
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

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        keep(new, old, "status")

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        causes = metadata.object_meta_update(new.metadata, old.metadata)
        for index, name in enumerate(new.spec.finalizers):
            at = f"spec.finalizers[{index}]"
            causes += [field.invalid(at, name, problem) for problem in names.qualified_name(name)]
            causes += _standard(at, name)
        return causes


def _standard(path: str, name: str) -> list[Cause]:
    """Upstream judges each finalizer alone, and puts no index to the first."""
    return [replace(cause, field=path) for cause in metadata.standard_finalizers(path, [name])]


async def delete(
    store: Store, strategy: Strategy, name: str, options: meta.DeleteOptions, env: Environment
) -> tuple[CachedObject, bool]:
    """The first DELETE makes it Terminating; one after its content is gone removes it."""
    validate_options(options)
    current = await store.read(NAMESPACE, "", name)
    namespace: core.Namespace = current.message
    check_preconditions(strategy, namespace.metadata, options)
    uid = namespace.metadata.uid
    if not namespace.metadata.HasField("deletionTimestamp"):

        async def mutate(found: CachedObject) -> Any:
            new = copy(found)
            if not new.metadata.HasField("deletionTimestamp"):
                new.metadata.deletionTimestamp.CopyFrom(env.now)
            new.status.phase = "Terminating"
            finalizers = garbage_finalizers(strategy, list(new.metadata.finalizers), options)
            new.metadata.ClearField("finalizers")
            new.metadata.finalizers.extend(finalizers)
            return new

        preconditions = Preconditions(uid=uid)
        marked = await store.update(
            NAMESPACE, "", name, mutate, preconditions=preconditions, dry_run=bool(options.dryRun), at=current
        )
        return marked, False
    if namespace.spec.finalizers:
        return current, False
    return await Deletion(store, strategy, "", name, options, env).run()


def strategy() -> NamespaceStrategy:
    """All endpoints of namespaces."""
    return NamespaceStrategy(
        NAMESPACE,
        {"status": NamespaceStatusStrategy(NAMESPACE), "finalize": NamespaceFinalizeStrategy(NAMESPACE)},
    )


__all__ = ["CONTENT_FINALIZER", "delete", "strategy"]
