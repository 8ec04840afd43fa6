"""Write the default roles and bindings of a cluster with RBAC, and reconcile them at each start.

Roles and bindings with the `autoupdate` annotation get the rules and subjects that they lack; those that a
person added stay.

Source: kube-apiserver 1.36, rbac/bootstrap-roles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac.bootstrap_policy import AUTOUPDATE, load
from nominee.apiserver.access.rbac.rules import Rule, uncovered_rules
from nominee.apiserver.objects.requests import Update, create_if_missing
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of

if TYPE_CHECKING:
    from nominee.apiserver.cache.watch_cache import WatchCache
    from nominee.apiserver.objects.requests import RegistryAPI


async def bootstrap(registry: RegistryAPI, cache: WatchCache) -> None:
    """Create and reconcile all default roles and bindings concurrently; usually there is nothing to do.

    Raises: StatusError when a write fails.
    """
    policy = load()
    aggregation.settle(policy.cluster_roles)
    wanted: list[tuple[AnyKind, list[Any]]] = [
        (kinds.CLUSTER_ROLE, policy.cluster_roles),
        (kinds.CLUSTER_ROLE_BINDING, policy.cluster_role_bindings),
        (kinds.ROLE, policy.roles),
        (kinds.ROLE_BINDING, policy.role_bindings),
    ]
    async with anyio.create_task_group() as group:
        for kind, objects in wanted:
            for obj in objects:
                found = cache.get(kind, obj.metadata.namespace, obj.metadata.name)
                if found is None:
                    group.start_soon(create_if_missing, registry, obj)
                elif found.message.metadata.annotations.get(AUTOUPDATE) == "true":
                    changed = reconcile(found.message, obj)
                    if changed is not None:
                        group.start_soon(_update, registry, kind, changed)


def reconcile(stored: Any, default: Any) -> Any | None:
    """Return a role or binding with the rules or subjects that it lacks, or None when it lacks nothing."""
    changed = copy_of(stored)
    if hasattr(default, "roleRef"):
        if stored.roleRef.name != default.roleRef.name:
            return None
        # Stored subjects have empty fields set that the default ones leave out.
        present = {_subject(subject) for subject in stored.subjects}
        missing = [subject for subject in default.subjects if _subject(subject) not in present]
        changed.subjects.extend(missing)
        return changed if missing else None
    if hasattr(default, "aggregationRule") and default.HasField("aggregationRule"):
        # Its rules come from other roles.
        return None
    held = [Rule.of(rule) for rule in stored.rules]
    lacking = [rule for rule in default.rules if uncovered_rules(held, [Rule.of(rule)])]
    changed.rules.extend(lacking)
    return changed if lacking else None


def _subject(subject: Any) -> tuple[str, str, str]:
    return subject.kind, subject.namespace, subject.name


async def _update(registry: RegistryAPI, kind: AnyKind, obj: Any) -> None:
    # Another server may have written it.
    with errors.ignoring(errors.is_conflict):
        await registry.perform(Update(kind, obj.metadata.namespace, obj.metadata.name, "", obj))
