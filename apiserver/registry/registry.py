"""Requests of all kinds, by their strategies: get, list, watch, create, update, patch, delete.

Implements `apiserver.objects.requests.RegistryAPI`. The order of steps is kube-apiserver 1.36's: mutating
admission, the strategy's preparation and validation, validating admission, one write.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from apiserver.access.attributes import Attributes
from apiserver.access.service_accounts import ServiceAccountTokens
from apiserver.access.user import current_user
from apiserver.admission.chain import Chain, plugins
from apiserver.admission.interface import Operation, Plugin, Request
from apiserver.kinds import conversion
from apiserver.kinds.core.pods.resize import RESIZE_SINCE
from apiserver.kinds.strategy import Environment, Strategy
from apiserver.kinds.table import rules_of, strategy_of
from apiserver.objects import generate_name
from apiserver.objects.cached_object import CachedObject
from apiserver.objects.requests import (
    NO_OPTIONS,
    DeleteResult,
    ListOptions,
    ListPage,
    PatchKind,
    WatchOptions,
    WriteOptions,
)
from apiserver.objects.watcher import Watcher
from apiserver.registry import namespace_deletion, patching, rules, token_requests, tracking
from apiserver.registry.body_checks import (
    check_name,
    check_namespace,
    check_revision,
    check_scope,
    check_segment,
)
from apiserver.registry.deletion import Deletion
from apiserver.registry.lookups import Lookups
from apiserver.registry.pods.binding import bind
from apiserver.registry.pods.eviction import EvictionRequest
from apiserver.registry.reading import Cache, Reader
from apiserver.registry.services import default_range
from apiserver.registry.services.allocation import DEFAULT_PORTS, Allocator, Claims
from apiserver.registry.services.objects import ServerObjects
from apiserver.registry.services.port_store import PortStore
from apiserver.registry.services.repair import Repair
from apiserver.registry.store import DeleteInstead, Preconditions, Store
from apiserver.schema import large_bodies, version_fields
from apiserver.storage.interface import VALUE_BYTES_MAX, Storage, StorageError
from apiserver.storage.status import to_status
from machinery import defaults
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import core, meta, policy
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock, to_time

_NOTHING = nullcontext()
EVENT_TTL_SECONDS = 3600
_APPLY_ATTEMPTS_MAX = 5
"""Of an apply to what is deleted and made again meanwhile."""
_Method = TypeVar("_Method", bound=Callable[..., Coroutine[Any, Any, Any]])


def _statuses(method: _Method) -> _Method:
    """Storage's errors become statuses."""

    @wraps(method)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except StorageError as error:
            raise to_status(error) from error

    return cast("_Method", wrapped)


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
    ) -> None:
        self._store = Store(storage, cache)
        self._cache = cache
        self._reads = reads
        self._gates = gates
        self._clock = clock
        self._rng = rng
        self._event_ttl_seconds = event_ttl_seconds
        self._accounts = accounts
        self._authorize = authorize
        self._lookups = Lookups(self._store, cache)
        self._chain = Chain(plugins(gates, disabled_admission, admission), self._lookups)
        objects = ServerObjects(self, self._store, cache)
        ports = PortStore(storage, DEFAULT_PORTS, self._new_uid)
        self.services = Allocator(objects, ports, rng)
        self.repair = Repair(self._store, objects, ports, clock)

    # Reading.

    @_statuses
    async def get(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str = "",
        *,
        resource_version: str = "",
    ) -> CachedObject:
        """One object; its subresources show the same. 400, 404."""
        check_segment(name)
        if subresource:
            self._strategy(kind, subresource)
        stored = conversion.stored_kind(kind)
        if self._reads is not None:
            found = await self._reads.get(stored, namespace, name, resource_version=resource_version)
        else:
            found = await self._store.newest(stored, namespace, name)
        if found is None:
            raise errors.not_found(kind, name)
        return conversion.shown(kind, found)

    @_statuses
    async def list(self, kind: Kind[Any], namespace: str, options: ListOptions) -> ListPage:
        check_scope(kind, namespace)
        return await self._reader().list(kind, namespace, options, convert=conversion.conversion(kind))

    @_statuses
    async def watch(self, kind: Kind[Any], namespace: str, options: WatchOptions) -> Watcher:
        check_scope(kind, namespace)
        return await self._reader().watch(kind, namespace, options, convert=conversion.conversion(kind))

    def _reader(self) -> Reader:
        if self._reads is None:
            raise errors.service_unavailable("this server cannot list or watch: it has no cache")
        return self._reads

    # Creating.

    @_statuses
    async def create(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject:
        """Create `body`, or bind or evict the pod `name`. Raises 400, 403, 404, 409, 422, 429."""
        if subresource:
            return await self._act(kind, namespace, name, subresource, body, options)
        strategy = strategy_of(kind)
        rules.check_options("CreateOptions", options)
        obj = conversion.as_stored(kind, body)
        check_namespace(strategy, namespace, obj.metadata)
        env = self._environment()
        self._complete(strategy.kind, obj)
        rules.fill_metadata(obj.metadata, self._new_uid(), env)
        _warn_of(rules.without_double_owners(obj.metadata), options)
        tracking.create(strategy.kind, obj, options, env.now)
        return await self._create_filled(kind, strategy, obj, options, env)

    async def _create_filled(
        self, kind: Kind[Any], strategy: Strategy[Any], obj: Any, options: WriteOptions, env: Environment
    ) -> CachedObject:
        """With what the server alone decides."""
        await self._admit("CREATE", kind, obj, None)
        prefix = "" if obj.metadata.name else obj.metadata.generateName
        if not prefix:
            return conversion.shown(kind, await self._create(strategy, obj, options, env))
        return conversion.shown(kind, await self._create_named(strategy, obj, prefix, options, env))

    async def _create_named(
        self, strategy: Strategy[Any], obj: Any, prefix: str, options: WriteOptions, env: Environment
    ) -> CachedObject:
        """With a generated name, again with another where it is taken."""
        for attempt in range(generate_name.ATTEMPTS_MAX):
            trial = strategy.kind.message()
            trial.CopyFrom(obj)
            trial.metadata.name = generate_name.generate(prefix, self._rng)
            try:
                return await self._create(strategy, trial, options, env)
            except StatusError as error:
                if not errors.is_already_exists(error):
                    raise
                if attempt + 1 == generate_name.ATTEMPTS_MAX:
                    raise errors.generate_name_conflict(strategy.kind, trial.metadata.name) from error
        raise AssertionError("unreachable")

    async def _create(
        self, strategy: Strategy[Any], obj: Any, options: WriteOptions, env: Environment
    ) -> CachedObject:
        kind = strategy.kind
        if kind is kinds.NAMESPACE:
            obj.metadata.labels[defaults.NAMESPACE_NAME_LABEL] = obj.metadata.name
        if kind is not kinds.SERVICE:
            return await self._create_checked(strategy, obj, options, env)
        async with Claims(self.services, dry_run=options.dry_run) as claims:
            await claims.renew(obj, None)
            return await self._create_checked(strategy, obj, options, env)

    async def _create_checked(
        self, strategy: Strategy[Any], obj: Any, options: WriteOptions, env: Environment
    ) -> CachedObject:
        kind = strategy.kind
        for text in strategy.early_warnings(obj):
            _warn_of(text, options)
        rules.before_create(strategy, obj, env)
        if options.warn is not None:
            for text in strategy.warnings(obj, None):
                options.warn(text)
        await self._validate("CREATE", kind, "", obj, None, options.dry_run)
        created = await self._store.create(
            kind, obj, dry_run=options.dry_run, lease_seconds=self._ttl_seconds(strategy)
        )
        await self._settle(kind, created)
        return created

    async def _act(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Any,
        options: WriteOptions,
    ) -> CachedObject:
        """What a pod's binding and eviction do, and a service account's token."""
        if kind is kinds.SERVICE_ACCOUNT and subresource == "token" and self._accounts is not None:
            return await self._issue(self._accounts, namespace, name, body)
        if kind is not kinds.POD or subresource not in ("binding", "eviction"):
            raise errors.unknown_resource()
        check_segment(name)
        check_namespace(strategy_of(kind), namespace, body.metadata)
        env = self._environment()
        if self._chain.handling(kind, "CREATE", subresource):
            request = Request("CREATE", kind, namespace, name, subresource, body)
            await self._chain.admit(request)
            await self._chain.validate(request)
        if isinstance(body, core.Binding):
            return await bind(self._store, namespace, name, body, env, dry_run=options.dry_run)
        assert isinstance(body, policy.Eviction)
        eviction = EvictionRequest(
            self._store, strategy_of(kind), self._change_pod_status, self._clock, env, namespace, name
        )
        return await eviction.run(body, dry_run=options.dry_run)

    async def _issue(
        self, accounts: ServiceAccountTokens, namespace: str, name: str, body: Any
    ) -> CachedObject:
        token_requests.prepare(body, namespace, name)
        request = Request("CREATE", kinds.SERVICE_ACCOUNT, namespace, name, "token", body)
        await self._chain.admit(request)
        await self._chain.validate(request)
        return await token_requests.issue(accounts, self._lookups, body, self._clock.now(), self._new_uid())

    # Changing.

    @_statuses
    async def update(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject:
        """PUT. Raises 400, 403, 404, 409, 422."""
        strategy = self._strategy(kind, subresource)
        rules.check_options("UpdateOptions", options)
        obj = conversion.as_stored(kind, body)
        check_namespace(strategy, namespace, obj.metadata)
        check_name(name, obj.metadata)
        self._complete(strategy.kind, obj)
        _warn_of(rules.without_double_owners(obj.metadata), options)

        async def change(current: CachedObject) -> Any:
            new = strategy.kind.message()
            new.CopyFrom(obj)
            tracking.update(strategy.kind, subresource, current.message, new, options, now)
            return new

        now = self._environment().now
        preconditions = Preconditions(uid=obj.metadata.uid)
        try:
            changed = await self._change(
                kind, strategy, namespace, name, subresource, change, options, preconditions
            )
        except StatusError as error:
            if not (rules_of(kind).created_by_update and errors.is_not_found(error) and not subresource):
                raise
            if obj.metadata.resourceVersion or obj.metadata.uid:
                raise
            self._may_create(kind, namespace, name)
            return await self.create(kind, namespace, "", "", obj, options)
        return conversion.shown(kind, changed)

    @_statuses
    async def patch(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        patch_kind: PatchKind,
        patch: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject:
        """PATCH, applied to the newest object. Raises 400, 403, 404, 409, 415, 422."""
        strategy = self._strategy(kind, subresource)
        applies = patch_kind is PatchKind.APPLY
        rules.check_options("PatchOptions", options, force=applies)
        if applies:
            return await self._apply(kind, strategy, namespace, name, subresource, patch, options)
        validation = patching.validation_of(options, self._gates.version)
        now = self._environment().now
        parse = partial(patching.parse, patch_kind, patch, validation)
        document = await large_bodies.decoded(len(patch), parse)

        async def change(current: CachedObject) -> Any:
            shown = conversion.shown(kind, current).message
            apply = partial(patching.apply, kind, patch_kind, document, shown, validation)
            new = conversion.as_stored(kind, await large_bodies.decoded(len(patch), apply))
            check_namespace(strategy, namespace, new.metadata)
            check_name(name, new.metadata)
            if not new.metadata.resourceVersion:
                new.metadata.resourceVersion = str(current.revision)
            self._complete(strategy.kind, new)
            tracking.update(strategy.kind, subresource, current.message, new, options, now)
            return new

        try:
            changed = await self._change(kind, strategy, namespace, name, subresource, change, options)
        finally:
            # Also where it fails: an unknown field may be why.
            patching.warn(validation, options)
        return conversion.shown(kind, changed)

    async def _apply(
        self,
        kind: Kind[Any],
        strategy: Strategy[Any],
        namespace: str,
        name: str,
        subresource: str,
        patch: bytes,
        options: WriteOptions,
    ) -> CachedObject:
        """Server-side apply; creates what does not exist."""
        env = self._environment()
        config = await large_bodies.decoded(len(patch), partial(tracking.configuration, patch), yaml=True)
        if len(patch) > VALUE_BYTES_MAX:
            checked = partial(tracking.check_size, kind, config)
            await large_bodies.decoded(len(patch), checked)

        def applied(live: Any | None) -> Any:
            new = conversion.as_stored(
                kind, tracking.apply(kind, subresource, live, config, options, env.now)
            )
            if live is None and new.metadata.uid:
                problem = f"uid mismatch: the provided object specified uid {new.metadata.uid}"
                raise errors.conflict(kind, name, f"{problem}, and no existing object was found")
            check_namespace(strategy, namespace, new.metadata)
            check_name(name, new.metadata)
            self._complete(strategy.kind, new)
            return new

        async def change(current: CachedObject) -> Any:
            return applied(conversion.shown(kind, current).message)

        for attempt in range(_APPLY_ATTEMPTS_MAX):
            try:
                changed = await self._change(kind, strategy, namespace, name, subresource, change, options)
                return conversion.shown(kind, changed)
            except StatusError as error:
                if subresource or not errors.is_not_found(error):
                    raise
            new = applied(None)
            new.metadata.resourceVersion = ""
            rules.fill_metadata(new.metadata, self._new_uid(), env)
            try:
                self._may_create(kind, namespace, name)
                made = await self._create_filled(kind, strategy, new, options, env)
            except StatusError as error:
                if not errors.is_already_exists(error) or attempt + 1 == _APPLY_ATTEMPTS_MAX:
                    raise
                continue
            if options.made is not None:
                options.made()
            return made
        raise AssertionError("unreachable")

    async def _change(
        self,
        kind: Kind[Any],
        strategy: Strategy[Any],
        namespace: str,
        name: str,
        subresource: str,
        change: Callable[[CachedObject], Awaitable[Any]],
        options: WriteOptions,
        preconditions: Preconditions | None = None,
    ) -> CachedObject:
        """One guaranteed update by the strategy's rules; deletes the object where its last finalizer goes."""
        check_segment(name)
        env = self._environment()
        stored = strategy.kind
        deleting: CachedObject | None = None
        warnings: Sequence[str] = ()

        async def mutate(current: CachedObject) -> Any:
            nonlocal deleting, warnings
            new = await change(current)
            check_revision(strategy, new.metadata, current)
            await self._admit("UPDATE", kind, new, current.message, subresource)
            double = rules.without_double_owners(new.metadata, patched=True)
            if claims is not None:
                await claims.renew(new, current.message)
            rules.before_update(strategy, new, current.message, env)
            tracking.keep_times(new, current.message)
            if options.warn is not None:
                warnings = [*filter(None, [double]), *strategy.warnings(new, current.message)]
            await self._validate("UPDATE", kind, subresource, new, current.message, options.dry_run)
            if strategy.deleted_by_update(new, current.message):
                deleting = current
                raise DeleteInstead
            return new

        where = namespace if stored.namespaced else ""
        claims = None
        if stored is kinds.SERVICE and not subresource:
            claims = Claims(self.services, dry_run=options.dry_run)
        async with claims or _NOTHING:
            try:
                changed = await self._store.update(
                    stored,
                    where,
                    name,
                    mutate,
                    preconditions=preconditions or Preconditions(),
                    dry_run=options.dry_run,
                    lease_seconds=self._ttl_seconds(strategy),
                )
            except DeleteInstead:
                gone = await self._store.delete(stored, where, name, dry_run=options.dry_run, at=deleting)
                await self._release(stored, gone, dry_run=options.dry_run)
                return gone
            await self._settle(stored, changed)
        if options.warn is not None:
            for text in warnings:
                options.warn(text)
        return changed

    async def _change_pod_status(
        self, namespace: str, name: str, change_in_place: Callable[[Any], None], dry_run: bool
    ) -> CachedObject:
        strategy = self._strategy(kinds.POD, "status")

        async def change(current: CachedObject) -> Any:
            new = core.Pod()
            new.CopyFrom(current.message)
            change_in_place(new)
            return new

        options = WriteOptions(dry_run=dry_run)
        return await self._change(kinds.POD, strategy, namespace, name, "status", change, options)

    # Deleting.

    @_statuses
    async def delete(
        self, kind: Kind[Any], namespace: str, name: str, options: meta.DeleteOptions
    ) -> DeleteResult:
        """DELETE, at once or gracefully. Raises 400, 403, 404, 409, 422."""
        check_segment(name)
        strategy = strategy_of(kind)
        env = self._environment()
        if self._chain.handling(kind, "DELETE", ""):
            await self._chain.admit(Request("DELETE", kind, namespace, name, "", None))
        problem = strategy.undeletable(name)
        if problem:
            raise errors.forbidden(kind, name, problem)
        if kind is kinds.NAMESPACE:
            found, gone = await namespace_deletion.delete(self._store, strategy, name, options, env)
        else:
            where = namespace if kind.namespaced else ""
            found, gone = await Deletion(self._store, strategy, where, name, options, env).run()
        if gone:
            await self._release(strategy.kind, found, dry_run=bool(options.dryRun))
        await self._settle(strategy.kind, found)
        return DeleteResult(conversion.shown(kind, found), gone)

    async def prepare_services(self) -> None:
        """Make the range of addresses, and repair what an earlier server left behind. StatusError."""
        await default_range.ensure(self, self._clock)
        await self.repair.once()

    async def _release(self, kind: Kind[Any], gone: CachedObject, *, dry_run: bool) -> None:
        """Give back what only the server gives."""
        if kind is kinds.SERVICE and not dry_run:
            await self.services.release(gone.message)

    # Common.

    def _may_create(self, kind: Kind[Any], namespace: str, name: str) -> None:
        """403 where an update or an apply would create, and the user may not create."""
        if self._authorize is not None:
            where = namespace if kind.namespaced else ""
            self._authorize(Attributes("create", kind.plural, kind.group, kind.version, "", where, name))

    def _complete(self, kind: Kind[Any], obj: Any) -> None:
        """Fill in what the client left out, and drop what this version does not know; in place. 413."""
        rules.check_size(kind, obj)
        defaults.apply(kind, obj, self._gates)
        version_fields.drop(self._gates.version, obj)

    def _ttl_seconds(self, strategy: Strategy[Any]) -> int:
        return self._event_ttl_seconds if strategy.expires else 0

    def _new_uid(self) -> str:
        """Random; also a server that starts again with the same seed makes others than before."""
        bits = self._rng.getrandbits(128) ^ int(self._clock.now() * 1_000_000)
        return str(uuid.UUID(int=bits, version=4))

    def _environment(self) -> Environment:
        return Environment(self._gates, to_time(self._clock.now()), current_user())

    def _strategy(self, kind: Kind[Any], subresource: str) -> Strategy[Any]:
        strategy = strategy_of(kind)
        if not subresource:
            return strategy
        found = strategy.subresources.get(subresource)
        if found is None or (
            subresource == "resize"
            and (self._gates.version < RESIZE_SINCE or not self._gates.enabled("InPlacePodVerticalScaling"))
        ):
            raise errors.unknown_resource()
        return found

    async def _admit(
        self, operation: Operation, kind: Kind[Any], obj: Any, old: Any, subresource: str = ""
    ) -> None:
        if self._chain.handling(kind, operation, subresource):
            metadata = obj.metadata
            await self._chain.admit(
                Request(operation, kind, metadata.namespace, metadata.name, subresource, obj, old)
            )

    async def _validate(
        self, operation: Operation, kind: Kind[Any], subresource: str, obj: Any, old: Any, dry_run: bool
    ) -> None:
        if self._chain.handling(kind, operation, subresource):
            namespace, name = obj.metadata.namespace, obj.metadata.name
            await self._chain.validate(
                Request(operation, kind, namespace, name, subresource, obj, old, dry_run)
            )

    async def _settle(self, kind: Kind[Any], written: CachedObject) -> None:
        """Let the cache see a write that admission of the next request depends on."""
        if self._cache is None or not rules_of(kind).read_your_write or not written.revision:
            return
        try:
            await self._cache.wait_until(written.revision)
        except StatusError as error:
            # The write stands; the cache will see it later.
            if not errors.is_timeout(error):
                raise


def _warn_of(text: str, options: WriteOptions) -> None:
    if text and options.warn is not None:
        options.warn(text)
