"""The registry: every request about objects, by the rules of their kinds.

Implements `nominee.apiserver.objects.requests.RegistryAPI` by one module for each request: `read`, `create`,
`update`, `patch`, `apply`, `delete`, `scale` and `actions` (binding, eviction, token). The order of a write's
steps is kube-apiserver 1.36's: mutating admission, the strategy's preparation and validation, validating
admission, one write.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType

from google.protobuf.message import Message

from nominee.apiserver.access.attributes import Attributes
from nominee.apiserver.access.service_accounts import ServiceAccountTokens
from nominee.apiserver.admission.chain import Chain, plugins
from nominee.apiserver.admission.interface import Plugin
from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import (
    NO_OPTIONS,
    DeleteResult,
    ListOptions,
    ListPage,
    PatchKind,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.registry import actions, deletion, read, scale
from nominee.apiserver.registry.apply import apply
from nominee.apiserver.registry.context import RegistryContext, new_uid
from nominee.apiserver.registry.create import create
from nominee.apiserver.registry.delete import delete
from nominee.apiserver.registry.lookups import Lookups
from nominee.apiserver.registry.patch import patch
from nominee.apiserver.registry.reading import Cache, Reader
from nominee.apiserver.registry.services import default_range
from nominee.apiserver.registry.services.allocation import DEFAULT_PORTS, Allocator
from nominee.apiserver.registry.services.objects import ServerObjects
from nominee.apiserver.registry.services.port_store import PortStore
from nominee.apiserver.registry.services.repair import Repair
from nominee.apiserver.registry.store import Store
from nominee.apiserver.registry.update import update
from nominee.apiserver.storage.interface import Storage, StorageError
from nominee.apiserver.storage.status import to_status
from nominee.machinery.api import errors
from nominee.machinery.api.errors import FailpointError, StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling

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
        reads: Reader | None,
        *,
        gates: Gates,
        clock: Clock,
        rng: random.Random,
        disabled_admission: Collection[str] = (),
        event_ttl_seconds: int = EVENT_TTL_SECONDS,
        admission: Collection[Plugin] = (),
        accounts: ServiceAccountTokens | None = None,
        authorize: Callable[[Attributes], None] | None = None,
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
            admission=Chain(plugins(gates, disabled_admission, admission), lookups),
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

    # Reading.

    async def get(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str = "",
        *,
        resource_version: str = "",
    ) -> CachedObject:
        """Return one object. Raises: StatusError 400, 404."""
        with _Statuses():
            return await read.get(self._context, kind, namespace, name, subresource, resource_version)

    async def get_scale(self, kind: AnyKind, namespace: str, name: str) -> CachedObject:
        """Return a workload's Scale. Raises: StatusError 400, 404."""
        with _Statuses():
            return await scale.get(self._context, kind, namespace, name)

    async def list(self, kind: AnyKind, namespace: str, options: ListOptions) -> ListPage:
        """Return a page of objects. Raises: StatusError 400, 404, 410, 422, 503."""
        with _Statuses():
            return await read.list_objects(self._context, kind, namespace, options)

    async def watch(self, kind: AnyKind, namespace: str, options: WatchOptions) -> Watcher:
        """Begin a watch. Raises: StatusError 400, 404, 410, 503, 504."""
        with _Statuses():
            return await read.watch(self._context, kind, namespace, options)

    # Writing.

    async def create(
        self, kind: AnyKind, namespace: str, body: Message, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult:
        """Create an object. Raises: StatusError 400, 403, 409, 413, 422."""
        with _Statuses() as warnings:
            made = await create(self._context, kind, namespace, body, options, warnings)
        return WriteResult(made, True, warnings)

    async def update(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Replace an object, or create one of a kind that allows it.

        Raises: StatusError 400, 403, 404, 409, 413, 422.
        """
        with _Statuses() as warnings:
            target = self._context.target(kind, namespace, name, subresource)
            changed, created = await update(self._context, target, body, options, warnings)
        return WriteResult(changed, created, warnings)

    async def patch(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        patch_kind: PatchKind,
        data: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Patch the newest version of an object; an apply creates it where it does not exist.

        Raises: StatusError 400, 403, 404, 409, 413, 415, 422.
        """
        created = False
        with _Statuses() as warnings:
            target = self._context.target(kind, namespace, name, subresource)
            if patch_kind is PatchKind.APPLY:
                changed, created = await apply(self._context, target, data, options, warnings)
            else:
                changed = await patch(self._context, target, patch_kind, data, options, warnings)
        return WriteResult(changed, created, warnings)

    async def delete(
        self, kind: AnyKind, namespace: str, name: str, options: meta.DeleteOptions
    ) -> DeleteResult:
        """Delete an object, at once or gracefully. Raises: StatusError 400, 403, 404, 409, 422."""
        with _Statuses() as warnings:
            warnings.extend(deletion.warnings(strategy_of(kind), options))
            found, gone = await delete(self._context, kind, namespace, name, options)
        return DeleteResult(found, gone, warnings)

    # Subresources that are objects of their own.

    async def update_scale(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        body: autoscaling.Scale,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Replace a workload's Scale. Raises: StatusError 400, 404, 409, 422."""
        with _Statuses() as warnings:
            target = self._context.target(kind, namespace, name, "")
            changed = await scale.update(self._context, target, body, options, warnings)
        return WriteResult(changed, False, warnings)

    async def patch_scale(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        patch_kind: PatchKind,
        data: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Patch or apply a workload's Scale. Raises: StatusError 400, 404, 409, 422."""
        with _Statuses() as warnings:
            target = self._context.target(kind, namespace, name, "")
            changed = await scale.patch(self._context, target, patch_kind, data, options, warnings)
        return WriteResult(changed, False, warnings)

    async def bind(
        self, namespace: str, name: str, body: core.Binding, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult:
        """Bind a pod to a node; the result has the pod. Raises: StatusError 400, 403, 404, 409, 500."""
        with _Statuses():
            pod = await actions.bind(self._context, namespace, name, body, options)
        return WriteResult(pod, True)

    async def evict(
        self, namespace: str, name: str, body: policy.Eviction, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult:
        """Evict a pod; the result has the pod. Raises: StatusError 400, 403, 404, 409, 422, 429, 500."""
        with _Statuses():
            pod = await actions.evict(self._context, namespace, name, body, options)
        return WriteResult(pod, True)

    async def issue_token(self, namespace: str, name: str, body: authentication.TokenRequest) -> WriteResult:
        """Issue a service account's token. Raises: StatusError 400, 404, 409, 422."""
        with _Statuses():
            request = await actions.issue_token(self._context, namespace, name, body)
        return WriteResult(request, True)
