"""The registry: every request about objects, by the rules of their kinds.

Implements `nominee.apiserver.objects.requests.RegistryAPI` by one module for each kind of request: `read`,
`create`, `update`, `patch`, `apply`, `delete`, `scale` and `actions` (binding, eviction, token). The order of
a write's steps is kube-apiserver 1.36's: mutating admission, the strategy's preparation and validation,
validating admission, one write.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, cast

from nominee.apiserver.access.service_accounts import ServiceAccountTokens
from nominee.apiserver.admission.chain import Chain, plugins
from nominee.apiserver.admission.interface import Plugin
from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import (
    Act,
    Create,
    Delete,
    DeleteCollection,
    DeleteResult,
    Get,
    List,
    ListPage,
    ObjectRequest,
    Patch,
    PatchKind,
    Update,
    Watch,
    WriteResult,
)
from nominee.apiserver.objects.user import User
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.registry import actions, read, scale
from nominee.apiserver.registry.context import RegistryContext, new_uid
from nominee.apiserver.registry.deletions import deletion
from nominee.apiserver.registry.deletions.collection import delete_collection
from nominee.apiserver.registry.deletions.delete import delete
from nominee.apiserver.registry.lookups import Lookups
from nominee.apiserver.registry.services import default_range
from nominee.apiserver.registry.services.allocation import DEFAULT_PORTS, Allocator
from nominee.apiserver.registry.services.objects import ServerObjects
from nominee.apiserver.registry.services.port_store import PortStore
from nominee.apiserver.registry.services.repair import Repair
from nominee.apiserver.registry.store import Cache, Store
from nominee.apiserver.registry.writes.apply import apply
from nominee.apiserver.registry.writes.create import create
from nominee.apiserver.registry.writes.patch import patch
from nominee.apiserver.registry.writes.update import update
from nominee.apiserver.storage.interface import Storage, StorageError
from nominee.apiserver.storage.status import to_status
from nominee.machinery.api import errors
from nominee.machinery.api.errors import FailpointError, StatusError
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock

R = TypeVar("R")
EVENT_TTL_SECONDS = 3600


class _Statuses:
    """Collect the warnings of a request; its errors are StatusErrors that carry them."""

    __slots__ = ("_warnings",)

    def __init__(self) -> None:
        self._warnings: list[str] = []

    def __enter__(self) -> list[str]:
        return self._warnings

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, StorageError | FailpointError):
            status = to_status(error) if isinstance(error, StorageError) else errors.internal(str(error))
            status.warnings = self._warnings
            raise status from error
        if isinstance(error, StatusError):
            error.warnings = [*self._warnings, *error.warnings]


class Registry:
    """See the module. Without a cache (tests of rules) everything is read from storage."""

    def __init__(
        self,
        storage: Storage,
        cache: Cache | None,
        reads: Reads | None,
        *,
        gates: Gates,
        clock: Clock,
        rng: random.Random,
        disabled_admission: Collection[str] = (),
        event_ttl_seconds: int = EVENT_TTL_SECONDS,
        admission: Collection[Plugin] = (),
        accounts: ServiceAccountTokens | None = None,
        authorize: Callable[[User, Attributes], None] | None = None,
        nominates_deferred_resizes: bool = False,
    ) -> None:
        store = Store(storage, StoredObjects(gates.version), cache)
        lookups = Lookups(store, cache)
        objects = ServerObjects(self, store, cache)
        ports = PortStore(storage, DEFAULT_PORTS, partial(new_uid, rng, clock))
        self._context = RegistryContext(
            store=store,
            cache=cache,
            reads=reads,
            lookups=lookups,
            admission=Chain(plugins(gates, clock, disabled_admission, admission), lookups),
            services=Allocator(objects, ports, rng),
            gates=gates,
            clock=clock,
            rng=rng,
            event_ttl_seconds=event_ttl_seconds,
            accounts=accounts,
            authorize=authorize,
            nominates_deferred_resizes=nominates_deferred_resizes,
        )
        self.services = self._context.services
        self.repair = Repair(store, objects, ports, clock)

    async def prepare_services(self) -> None:
        """Create the default ServiceCIDR, and repair an earlier server's allocations. Raises: StatusError."""
        await default_range.ensure(self, self._context.clock)
        await self.repair.once()

    async def perform(self, request: ObjectRequest[R]) -> R:
        """Carry out a request. Raises: StatusError."""
        with _Statuses() as warnings:
            return cast("R", await _PERFORM[type(request)](self._context, request, warnings))


async def _get(context: RegistryContext, request: Get, warnings: list[str]) -> CachedObject:
    if request.subresource == "scale":
        return await scale.get(context, request)
    return await read.get(context, request)


async def _list(context: RegistryContext, request: List, warnings: list[str]) -> ListPage:
    return await read.list_objects(context, request)


async def _watch(context: RegistryContext, request: Watch, warnings: list[str]) -> Watcher:
    return await read.watch(context, request)


async def _create(context: RegistryContext, request: Create, warnings: list[str]) -> WriteResult:
    return WriteResult(await create(context, request, warnings), True, warnings)


async def _update(context: RegistryContext, request: Update, warnings: list[str]) -> WriteResult:
    if request.subresource == "scale":
        return WriteResult(await scale.update(context, request, warnings), False, warnings)
    changed, created = await update(context, request, warnings)
    return WriteResult(changed, created, warnings)


async def _patch(context: RegistryContext, request: Patch, warnings: list[str]) -> WriteResult:
    if request.subresource == "scale":
        return WriteResult(await scale.patch(context, request, warnings), False, warnings)
    if request.patch_kind is PatchKind.APPLY:
        changed, created = await apply(context, request, warnings)
        return WriteResult(changed, created, warnings)
    return WriteResult(await patch(context, request, warnings), False, warnings)


async def _delete(context: RegistryContext, request: Delete, warnings: list[str]) -> DeleteResult:
    warnings.extend(deletion.warnings(strategy_of(request.kind), request.options))
    found, gone = await delete(context, request)
    return DeleteResult(found, gone, warnings)


async def _act(context: RegistryContext, request: Act, warnings: list[str]) -> WriteResult:
    return WriteResult(await actions.BY_SUBRESOURCE[request.subresource](context, request), True)


_PERFORM: Mapping[type, Callable[[RegistryContext, Any, list[str]], Awaitable[object]]] = {
    Get: _get,
    List: _list,
    Watch: _watch,
    Create: _create,
    Update: _update,
    Patch: _patch,
    Delete: _delete,
    DeleteCollection: delete_collection,
    Act: _act,
}
