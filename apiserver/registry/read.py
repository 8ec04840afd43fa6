"""GET, list and watch of objects, converted to the requested kind."""

from __future__ import annotations

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.kinds import conversion
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Get, List, ListPage, Watch
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.registry.body_checks import check_scope, check_segment
from nominee.apiserver.registry.context import RegistryContext
from nominee.machinery.api import errors


async def get(context: RegistryContext, request: Get) -> CachedObject:
    """Return one object; its subresources return the same. Raises: StatusError 400, 404."""
    kind, namespace, name = request.kind, request.namespace, request.name
    check_segment(name)
    if request.subresource:
        context.strategy(kind, request.subresource)
    stored = conversion.stored_kind(kind)
    if context.reads is not None:
        found = await context.reads.get(stored, namespace, name, resource_version=request.resource_version)
    else:
        found = await context.store.newest(stored, namespace, name)
    if found is None:
        raise errors.not_found(kind, name)
    return conversion.convert_stored(kind, found)


async def list_objects(context: RegistryContext, request: List) -> ListPage:
    """Return a page of objects. Raises: StatusError 400, 404, 410, 422, 503."""
    kind, namespace = request.kind, request.namespace
    check_scope(kind, namespace)
    return await _reads(context).list(kind, namespace, request.options, convert=conversion.conversion(kind))


async def watch(context: RegistryContext, request: Watch) -> Watcher:
    """Begin a watch. Raises: StatusError 400, 404, 410, 503, 504."""
    kind, namespace = request.kind, request.namespace
    check_scope(kind, namespace)
    return await _reads(context).watch(kind, namespace, request.options, convert=conversion.conversion(kind))


def _reads(context: RegistryContext) -> Reads:
    if context.reads is None:
        raise errors.service_unavailable("this server cannot list or watch: it has no cache")
    return context.reads
