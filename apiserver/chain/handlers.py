"""The handlers of requests about objects, and the table from (verb, subresource) to handler.

A handler reads a request's body and options, and returns what is asked of the registry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from nominee.apiserver.chain import problems, request_options
from nominee.apiserver.chain.proxy_names import proxied_name_and_port
from nominee.apiserver.chain.request import WRITES, ApiRequest, Verb
from nominee.apiserver.chain.results import Result
from nominee.apiserver.kinds.autoscaling.scales import SCALE
from nominee.apiserver.kinds.strategy import read_only
from nominee.apiserver.objects.requests import (
    Act,
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    ObjectRequest,
    Patch,
    RegistryAPI,
    Update,
    Watch,
)
from nominee.apiserver.registry.deletions.collection import is_deletable
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

Handler = Callable[[ApiRequest, AnyKind], Awaitable[ObjectRequest[Any]]]
"""Returns what a request asks of the registry. Raises: StatusError."""


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
    result: Result = await registry.perform(await handler(request, kind))
    return result


async def _find_target(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> None:
    """Read the object of a subresource that needs a real node. Raises: StatusError 400, 404."""
    name = request.name
    if request.subresource == "proxy":
        name, _ = proxied_name_and_port(kind.kind.lower(), name)
    await registry.perform(Get(kind, request.namespace, name))


async def _get(request: ApiRequest, kind: AnyKind) -> Get:
    version = request.resource_version()
    return Get(kind, request.namespace, request.name, request.subresource, version)


async def _get_scale(request: ApiRequest, kind: AnyKind) -> Get:
    return Get(kind, request.namespace, request.name, "scale")


async def _list(request: ApiRequest, kind: AnyKind) -> List:
    return List(kind, request.namespace, request.list_options())


async def _watch(request: ApiRequest, kind: AnyKind) -> Watch:
    return Watch(kind, request.namespace, request.watch_options())


async def _create(request: ApiRequest, kind: AnyKind) -> Create:
    options = request.write_options("CreateOptions")
    return Create(kind, request.namespace, await request.body(kind), options)


async def _update(request: ApiRequest, kind: AnyKind) -> Update:
    options, subresource = request.write_options("UpdateOptions"), request.subresource
    body = await request.body(SCALE if subresource == "scale" else kind)
    return Update(kind, request.namespace, request.name, subresource, body, options)


async def _patch(request: ApiRequest, kind: AnyKind) -> Patch:
    patch_kind = request.patch_kind()
    options = request.write_options("PatchOptions")
    data = await request.patch()
    return Patch(kind, request.namespace, request.name, request.subresource, patch_kind, data, options)


async def _delete(request: ApiRequest, kind: AnyKind) -> Delete:
    options = await _delete_options(request)
    return Delete(kind, request.namespace, request.name, options, request.origin())


async def _delete_options(request: ApiRequest) -> meta.DeleteOptions:
    options = await request.delete_options()
    request_options.check_dry_run(options.dryRun, "DeleteOptions")
    return options


async def _delete_collection(request: ApiRequest, kind: AnyKind) -> DeleteCollection:
    if not is_deletable(kind, request.namespace):
        raise problems.method_not_allowed()
    options = await _delete_options(request)
    return DeleteCollection(kind, request.namespace, request.list_options(), options, request.origin())


async def _act(request: ApiRequest, kind: AnyKind) -> Act:
    options, subresource = request.write_options("CreateOptions"), request.subresource
    body = await request.body(BODIES[subresource])
    return Act(kind, request.namespace, request.name, subresource, body, options)


BODIES: Final[Mapping[str, AnyKind]] = {"binding": BINDING, "eviction": EVICTION, "token": TOKEN_REQUEST}
"""The bodies of actions, by their subresources."""
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
    ("update", "scale"): _update,
    ("patch", "scale"): _patch,
    ("create", "binding"): _act,
    ("create", "eviction"): _act,
    ("create", "token"): _act,
}
"""Every request about an object. A subresource is served if its kind has it (`Kind.subresources`)."""
