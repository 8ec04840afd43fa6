"""Writes what a cluster with RBAC begins with, and mends what it lacks (rbac/bootstrap-roles of upstream).

Roles and bindings that say `autoupdate` get rules and subjects that they lack; what a person added stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from apiserver.access.rbac import aggregation
from apiserver.access.rbac.bootstrap_policy import AUTOUPDATE, load
from apiserver.access.rbac.rules import Rule, uncovered
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind

if TYPE_CHECKING:
    from apiserver.cache.watch_cache import WatchCache
    from apiserver.objects.requests import RegistryAPI


async def bootstrap(registry: RegistryAPI, cache: WatchCache) -> None:
    """All at once; usually there is nothing to do. Raises StatusError."""
    policy = load()
    aggregation.settle(policy.cluster_roles)
    wanted: list[tuple[Kind[Any], list[Any]]] = [
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
                    group.start_soon(_create, registry, kind, obj)
                elif found.message.metadata.annotations.get(AUTOUPDATE) == "true":
                    changed = mended(found.message, obj)
                    if changed is not None:
                        group.start_soon(_update, registry, kind, changed)


def mended(found: Any, wanted: Any) -> Any | None:
    """A role or binding with what it lacks; None where it lacks nothing."""
    changed = type(found)()
    changed.CopyFrom(found)
    if hasattr(wanted, "roleRef"):
        if found.roleRef.name != wanted.roleRef.name:
            return None
        # What is stored has empty fields set where the wanted one leaves them out.
        there = {_subject(subject) for subject in found.subjects}
        missing = [subject for subject in wanted.subjects if _subject(subject) not in there]
        changed.subjects.extend(missing)
        return changed if missing else None
    if hasattr(wanted, "aggregationRule") and wanted.HasField("aggregationRule"):
        # Its rules are others' rules.
        return None
    held = [Rule.of(rule) for rule in found.rules]
    lacking = [rule for rule in wanted.rules if uncovered(held, [Rule.of(rule)])]
    changed.rules.extend(lacking)
    return changed if lacking else None


def _subject(subject: Any) -> tuple[str, str, str]:
    return subject.kind, subject.namespace, subject.name


async def _create(registry: RegistryAPI, kind: Kind[Any], obj: Any) -> None:
    try:
        await registry.create(kind, obj.metadata.namespace, obj)
    except StatusError as error:
        if not errors.is_already_exists(error):
            raise


async def _update(registry: RegistryAPI, kind: Kind[Any], obj: Any) -> None:
    try:
        await registry.update(kind, obj.metadata.namespace, obj.metadata.name, "", obj)
    except StatusError as error:
        # Another server has done it.
        if not errors.is_conflict(error):
            raise
