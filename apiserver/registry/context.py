"""The dependencies that the requests of a registry share, and the steps that they have in common."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nominee.apiserver.access.service_accounts import ServiceAccountTokens
from nominee.apiserver.admission.chain import Chain
from nominee.apiserver.admission.interface import AdmissionRequest, Operation
from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.kinds.core.pods.resize import RESIZE_SINCE
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.kinds.table import rules_of, strategy_of
from nominee.apiserver.objects.attributes import Attributes, Origin
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Patch, Update, WriteOptions
from nominee.apiserver.objects.user import User
from nominee.apiserver.registry import rules
from nominee.apiserver.registry.lookups import Lookups
from nominee.apiserver.registry.services.allocation import Allocator, Claims
from nominee.apiserver.registry.store import Cache, Store
from nominee.apiserver.schema import version_fields
from nominee.machinery import defaults
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock, to_time


def new_uid(rng: random.Random, clock: Clock) -> str:
    """Return a random uid. A server that restarts with the same seed does not repeat earlier uids."""
    bits = rng.getrandbits(128) ^ int(clock.now() * 1_000_000)
    return str(uuid.UUID(int=bits, version=4))


@dataclass(frozen=True, slots=True)
class Target:
    """The object of a change: `kind` is the request's, `strategy` the endpoint's, for the stored kind."""

    kind: AnyKind
    strategy: Strategy[Any]
    namespace: str
    name: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class RegistryContext:
    """The dependencies of a registry, and the steps that its requests share.

    Without a `cache` (tests of rules) everything is read from storage; without `reads` nothing can be listed
    or watched. `authorize` checks a user; None allows everything.
    """

    store: Store
    cache: Cache | None
    reads: Reads | None
    lookups: Lookups
    admission: Chain
    services: Allocator
    gates: Gates
    clock: Clock
    rng: random.Random
    event_ttl_seconds: int
    accounts: ServiceAccountTokens | None
    authorize: Callable[[User, Attributes], None] | None
    nominates_deferred_resizes: bool = False

    def environment(self, origin: Origin) -> Environment:
        """Return the environment of one request's rules: gates, the time in whole seconds, the user."""
        now = to_time(self.clock.now())
        return Environment(self.gates, now, origin.user, self.nominates_deferred_resizes)

    def new_uid(self) -> str:
        """Return the uid of a new object."""
        return new_uid(self.rng, self.clock)

    def strategy(self, kind: AnyKind, subresource: str) -> Strategy[Any]:
        """Return the strategy of an endpoint. Raises: StatusError 404 of a subresource that is not served."""
        strategy = strategy_of(kind)
        if not subresource:
            return strategy
        found = strategy.subresources.get(subresource)
        if found is None or (
            subresource == "resize"
            and (self.gates.version < RESIZE_SINCE or not self.gates.enabled("InPlacePodVerticalScaling"))
        ):
            raise errors.unknown_resource()
        return found

    def target(self, kind: AnyKind, namespace: str, name: str, subresource: str) -> Target:
        """Return the object of a change. Raises: StatusError 404 of a subresource that is not served."""
        return Target(kind, self.strategy(kind, subresource), namespace, name, subresource)

    def target_of(self, request: Update | Patch) -> Target:
        """Return the object that a request changes. Raises: as `target`."""
        return self.target(request.kind, request.namespace, request.name, request.subresource)

    def complete(self, kind: AnyKind, obj: Any) -> None:
        """Set defaults and drop fields that this version does not know, in place. Raises: StatusError 413."""
        rules.check_size(kind, obj)
        defaults.apply(kind, obj, self.gates)
        version_fields.drop(self.gates.version, obj)

    def check_may_create(self, target: Target, origin: Origin) -> None:
        """Authorize the creation that an update or apply turns into. Raises: StatusError 403."""
        if self.authorize is not None:
            kind = target.kind
            where = target.namespace if kind.namespaced else ""
            asked = Attributes("create", kind.plural, kind.group, kind.version, "", where, target.name)
            self.authorize(origin.user, asked)

    def lease_seconds(self, strategy: Strategy[Any]) -> int:
        """Return the time to live of the strategy's objects; 0 for no limit."""
        return self.event_ttl_seconds if strategy.expires else 0

    def admission_request(
        self, operation: Operation, kind: AnyKind, obj: Any, old: Any, options: WriteOptions, sub: str = ""
    ) -> AdmissionRequest | None:
        """Return a write, of the subresource `sub`, for admission; None where no plugin handles it."""
        if not self.admission.handling(kind, operation, sub):
            return None
        namespace, name, dry_run = obj.metadata.namespace, obj.metadata.name, options.dry_run
        return AdmissionRequest(
            operation, kind, namespace, name, sub, obj, old, dry_run, options.origin, options.imported
        )

    async def settle(self, kind: AnyKind, written: CachedObject) -> None:
        """Wait until the cache has a write that the rules of the next request read from there."""
        if self.cache is None or not rules_of(kind).read_your_write or not written.revision:
            return
        try:
            await self.cache.wait_until(written.revision)
        except StatusError as error:
            # The write is in etcd; the cache gets it later.
            if not errors.is_timeout(error):
                raise

    def claims(self, kind: AnyKind, *, dry_run: bool) -> Claims | None:
        """Return the claims of a write on cluster addresses and node ports; None for kinds that take none."""
        return Claims(self.services, dry_run=dry_run) if rules_of(kind).takes_addresses else None

    async def release(self, kind: AnyKind, gone: CachedObject, *, dry_run: bool) -> None:
        """Free the cluster addresses and node ports of a deleted object."""
        if rules_of(kind).takes_addresses and not dry_run:
            await self.services.release(gone.message)
