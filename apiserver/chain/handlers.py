"""The handlers of requests about objects, and the table from (verb, subresource) to handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from nominee.apiserver.chain import problems, request_options
from nominee.apiserver.chain.proxy_names import proxied_name_and_port
from nominee.apiserver.chain.request import WRITES, ApiRequest, Verb
from nominee.apiserver.chain.results import Result
from nominee.apiserver.kinds.autoscaling.scales import SCALE
from nominee.apiserver.kinds.strategy import read_only
from nominee.apiserver.objects.requests import DeleteResult, ListPage, RegistryAPI, WriteResult
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.registry.collection import delete_collection, is_deletable
from nominee.apiserver.registry.token_requests import TOKEN_REQUEST
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.api.pb import core, meta, policy

BINDING: Final = Kind("", "v1", "Binding", "bindings", core.Binding, core.Binding)
EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions", policy.Eviction, policy.Eviction)
_NOT_EMULATED: Final[Mapping[AnyKind, frozenset[str]]] = {
    kinds.POD: frozenset({"log", "exec", "attach", "portforward", "proxy"}),
    kinds.NODE: frozenset({"proxy"}),
}

Handler = Callable[[RegistryAPI, ApiRequest, AnyKind], Awaitable[Result]]


async def handle(registry: RegistryAPI, request: ApiRequest) -> Result:
    """Serve a request with its handler. Raises: StatusError 404, 405, 406, 501, and those of its handler."""
    own = request.handler
    if own is not None:
        return await own(registry)
    kind = request.kind
    if kind is None:
        raise problems.not_served()
    if kind.read_only and request.verb in WRITES:
        # Before the body is read: its schema is not known.
        raise read_only(kind)
    subresource = request.subresource
    if subresource and subresource not in kind.subresources:
        if subresource in _NOT_EMULATED.get(kind, ()):
            await _find_target(registry, request, kind)
            raise problems.not_emulated(f"{kind.plural}/{subresource}")
        raise problems.not_served()
    handler = TABLE.get((request.verb, subresource))
    if handler is None:
        raise problems.method_not_allowed()
    request.prepare()
    return await handler(registry, request, kind)


async def _find_target(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> None:
    """Read the object of a subresource that needs a real node. Raises: StatusError 400, 404."""
    name = request.name
    if request.subresource == "proxy":
        name, _ = proxied_name_and_port(kind.kind.lower(), name)
    await registry.get(kind, request.namespace, name)


async def _get(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> Result:
    return await registry.get(
        kind,
        request.namespace,
        request.name,
        request.subresource,
        resource_version=request.resource_version(),
    )


async def _list(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> ListPage:
    return await registry.list(kind, request.namespace, request.list_options())


async def _watch(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> Watcher:
    return await registry.watch(kind, request.namespace, request.watch_options())


async def _create(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    options = request.write_options("CreateOptions")
    body = await request.body(kind)
    return await registry.create(kind, request.namespace, body, options)


async def _update(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    options = request.write_options("UpdateOptions")
    body = await request.body(kind)
    return await registry.update(kind, request.namespace, request.name, request.subresource, body, options)


async def _patch(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    patch_kind = request.patch_kind()
    options = request.write_options("PatchOptions")
    data = await request.patch()
    return await registry.patch(
        kind, request.namespace, request.name, request.subresource, patch_kind, data, options
    )


async def _delete(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> DeleteResult:
    return await registry.delete(kind, request.namespace, request.name, await _delete_options(request))


async def _delete_collection(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> ListPage:
    if not is_deletable(kind, request.namespace):
        raise problems.method_not_allowed()
    options = await _delete_options(request)
    return await delete_collection(registry, kind, request.namespace, request.list_options(), options)


async def _delete_options(request: ApiRequest) -> meta.DeleteOptions:
    options = await request.delete_options()
    request_options.check_dry_run(options.dryRun, "DeleteOptions")
    return options


async def _get_scale(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> Result:
    return await registry.get_scale(kind, request.namespace, request.name)


async def _update_scale(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    options = request.write_options("UpdateOptions")
    body = await request.body(SCALE)
    return await registry.update_scale(kind, request.namespace, request.name, body, options)


async def _patch_scale(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    patch_kind = request.patch_kind()
    options = request.write_options("PatchOptions")
    data = await request.patch()
    return await registry.patch_scale(kind, request.namespace, request.name, patch_kind, data, options)


async def _bind(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    options = request.write_options("CreateOptions")
    body = await request.body(BINDING)
    return await registry.bind(request.namespace, request.name, body, options)


async def _evict(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    options = request.write_options("CreateOptions")
    body = await request.body(EVICTION)
    return await registry.evict(request.namespace, request.name, body, options)


async def _issue_token(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> WriteResult:
    request.write_options("CreateOptions")
    body = await request.body(TOKEN_REQUEST)
    return await registry.issue_token(request.namespace, request.name, body)


TABLE: Mapping[tuple[Verb, str], Handler] = {
    ("get", ""): _get,
    ("list", ""): _list,
    ("watch", ""): _watch,
    ("create", ""): _create,
    ("update", ""): _update,
    ("patch", ""): _patch,
    ("delete", ""): _delete,
    ("deletecollection", ""): _delete_collection,
    ("get", "status"): _get,
    ("update", "status"): _update,
    ("patch", "status"): _patch,
    ("get", "resize"): _get,
    ("update", "resize"): _update,
    ("patch", "resize"): _patch,
    ("get", "ephemeralcontainers"): _get,
    ("update", "ephemeralcontainers"): _update,
    ("patch", "ephemeralcontainers"): _patch,
    ("get", "approval"): _get,
    ("update", "approval"): _update,
    ("patch", "approval"): _patch,
    ("update", "finalize"): _update,
    ("get", "scale"): _get_scale,
    ("update", "scale"): _update_scale,
    ("patch", "scale"): _patch_scale,
    ("create", "binding"): _bind,
    ("create", "eviction"): _evict,
    ("create", "token"): _issue_token,
}
"""Every request about an object. A subresource is served if its kind has it (`Kind.subresources`)."""
