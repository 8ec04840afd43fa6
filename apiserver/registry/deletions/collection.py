"""DELETE of a collection: each selected object is deleted, one after the other."""

from __future__ import annotations

from nominee.apiserver.kinds.table import rules_of, strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Delete, DeleteCollection, List, ListPage
from nominee.apiserver.registry import read
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.deletions import deletion
from nominee.apiserver.registry.deletions.delete import delete
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of

DELETED_AT_ONCE_MAX = 100_000


def is_deletable(kind: AnyKind, namespace: str) -> bool:
    """Report whether the collection may be deleted: not namespaces, and not across all namespaces.

    Source: kube-apiserver 1.36, endpoints/installer.go.
    """
    return not rules_of(kind).has_content and (bool(namespace) or not kind.namespaced)


async def delete_collection(
    context: RegistryContext, request: DeleteCollection, warnings: list[str]
) -> ListPage:
    """Delete each object that `listing` selects, and return the deleted objects.

    An object that is already gone is skipped.

    Raises: StatusError of the first object that may not be deleted; those before it are deleted.
    """
    kind = request.kind
    warnings.extend(deletion.warnings(strategy_of(kind), request.options))
    page = await read.list_objects(context, List(kind, request.namespace, request.listing))
    deleted: list[CachedObject] = []
    for found in page.items[:DELETED_AT_ONCE_MAX]:
        options = copy_of(request.options)
        with errors.ignoring(errors.is_not_found):
            await delete(context, Delete(kind, found.namespace, found.name, options, request.origin))
        deleted.append(found)
    return ListPage(deleted, page.resource_version, warnings=warnings)
