"""DELETE of many objects: each selected one by itself, as if asked for one after the other."""

from __future__ import annotations

from typing import Any

from apiserver.kinds.table import strategy_of
from apiserver.objects.cached_object import CachedObject
from apiserver.objects.requests import ListOptions, ListPage, RegistryAPI
from apiserver.registry import deletion
from machinery.api import errors
from machinery.api.errors import StatusError
from machinery.api.kinds import NAMESPACE, Kind
from machinery.api.pb import meta

DELETED_AT_ONCE_MAX = 100_000


def is_deletable(kind: Kind[Any], namespace: str) -> bool:
    """Whether there is a request to delete all at once (upstream's endpoints/installer.go): not namespaces,
    and never those of every namespace.
    """
    return kind is not NAMESPACE and (bool(namespace) or not kind.namespaced)


async def delete_collection(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    listing: ListOptions,
    options: meta.DeleteOptions,
) -> ListPage:
    """Delete each object that `listing` selects; returns those that were deleted.

    An object that is gone meanwhile does not matter. Raises: StatusError of the first object that may not be
    deleted; those before it are.
    """
    warnings = deletion.warnings(strategy_of(kind), options)
    try:
        page = await registry.list(kind, namespace, listing)
    except StatusError as error:
        error.warnings = warnings
        raise
    deleted: list[CachedObject] = []
    for found in page.items[:DELETED_AT_ONCE_MAX]:
        each = meta.DeleteOptions()
        each.CopyFrom(options)
        try:
            await registry.delete(kind, found.namespace, found.name, each)
        except StatusError as error:
            if not errors.is_not_found(error):
                raise
        deleted.append(found)
    return ListPage(deleted, page.resource_version, warnings=warnings)
