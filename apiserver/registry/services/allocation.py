"""Allocation of cluster IPs and node ports in etcd, safe for several API servers at once.

An address is reserved by an IPAddress of that name, which only one server can create; node ports are bits of
one RangeAllocation, changed by compare-and-swap. Both are taken before the Service is written. When the write
fails they are released; when a server crashes in between, or the outcome of the write is unknown, `repair`
releases them later.

Source: kube-apiserver 1.36, registry/core/service/storage (alloc.go), ipallocator, portallocator.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import TracebackType

import anyio

from nominee.apiserver.kinds.core.services import carry_over, families
from nominee.apiserver.kinds.core.services import validation as validation
from nominee.apiserver.registry.services import addresses, node_ports
from nominee.apiserver.registry.services.node_ports import PortChange, PortRange
from nominee.apiserver.registry.services.objects import ServerObjects
from nominee.apiserver.registry.services.port_store import PortStore
from nominee.apiserver.storage.interface import StorageError
from nominee.apiserver.validation import field as fields
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import SERVICE
from nominee.machinery.api.pb import core
from nominee.machinery.runtime import failpoints, logs

DEFAULT_ADDRESSES = ipaddress.IPv4Network("10.0.0.0/24")
"""The default of `--service-cluster-ip-range`: the ServiceCIDR `kubernetes`."""
DEFAULT_PORTS = PortRange()
"""The default of `--service-node-port-range`."""
GIVE_BACK_SECONDS_MAX = 5.0
"""The limit for releasing what a failed request has taken; after it the repair releases it."""
_ALLOCATED = failpoints.declare(
    "apiserver.services.allocated",
    "the addresses and node ports of a Service are allocated; the Service is not written",
)
"""The address and ports are taken; the Service is not written yet."""
_RELEASE = failpoints.declare(
    "apiserver.services.release", "a Service is deleted; its addresses and node ports are not released"
)
"""The Service is deleted; its address and ports are not released yet."""
_log = logs.get()


class Claim:
    """The addresses and ports that one write takes and releases.

    A failed write releases what it took. A write whose outcome is unknown (?timeout=, no response of etcd)
    releases nothing: the Service may exist.
    """

    def __init__(self, give_back: Callable[[Iterable[str], Iterable[int]], Awaitable[None]]) -> None:
        """Start without any claim; `give_back` releases those that still belong to the Service."""
        self._give_back = give_back
        self.taken_addresses: list[str] = []
        self.taken_ports: list[int] = []
        self.old_addresses: list[str] = []
        self.old_ports: list[int] = []

    async def finish(self, error: BaseException | None) -> None:
        """Release the claims that the written Service no longer has, or all if the write failed."""
        if error is None:
            await self._give_back(self.old_addresses, self.old_ports)
        elif isinstance(error, StatusError) and error.code < 500:
            await self.revert()

    async def revert(self) -> None:
        """Release everything taken."""
        await self._give_back(self.taken_addresses, self.taken_ports)


class Claims:
    """The claims of one write, which may be retried: each attempt releases those of the last one."""

    def __init__(self, allocator: Allocator, *, dry_run: bool) -> None:
        self._allocator = allocator
        self._dry_run = dry_run
        self._claim: Claim | None = None

    async def renew(self, new: core.Service, old: core.Service | None) -> None:
        """Allocate for this attempt.

        Raises: StatusError.
        """
        last, self._claim = self._claim, None
        if last is not None:
            await last.revert()
        self._claim = await self._allocator.allocate(new, old, dry_run=self._dry_run)
        await _ALLOCATED.hit(service=f"{new.metadata.namespace}/{new.metadata.name}")

    async def __aenter__(self) -> Claims:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._claim is not None:
            await self._claim.finish(error)


class Allocator:
    """Allocates addresses and ports; see the module."""

    def __init__(self, objects: ServerObjects, ports: PortStore, rng: random.Random) -> None:
        self._objects = objects
        self._ports = ports
        self._rng = rng

    async def allocate(self, new: core.Service, old: core.Service | None, *, dry_run: bool) -> Claim:
        """Set the addresses and ports of `new` in place.

        Raises: StatusError 422, 500, 503.
        """
        before = old.spec if old is not None else None
        if before is not None:
            carry_over.patch_allocated(new.spec, before)
        carry_over.normalize_addresses(new.spec, before)
        causes = families.complete(new.spec, before)
        if causes:
            raise errors.invalid(SERVICE, new.metadata.name, causes)
        claim = Claim(partial(self._give_back, new))
        try:
            await self._address(new, before, claim, dry_run=dry_run)
            await self._node_ports(new, before, claim, dry_run=dry_run)
        except BaseException:
            await claim.revert()
            raise
        return claim

    async def release(self, gone: core.Service) -> None:
        """Release the addresses and ports of a deleted Service."""
        await _RELEASE.hit(service=f"{gone.metadata.namespace}/{gone.metadata.name}")
        own = [each for each in gone.spec.clusterIPs if each != "None"]
        await self._give_back(gone, own, node_ports.numbers(gone.spec))

    # Addresses.

    async def _address(
        self, new: core.Service, old: core.ServiceSpec | None, claim: Claim, *, dry_run: bool
    ) -> None:
        spec = new.spec
        if old is not None and old.type != "ExternalName":
            if spec.type == "ExternalName" and addresses.is_addressed(old) and not dry_run:
                claim.old_addresses += old.clusterIPs
            return
        if not addresses.is_addressed(spec):
            return
        asked = spec.clusterIP
        try:
            address = await (self._asked(new, asked, dry_run) if asked else self._next(new, dry_run))
        except _Refused as refused:
            what = f"failed to allocate IP {asked}: " if asked else "failed to allocate IP: "
            shown = list(spec.clusterIPs) or [""]
            cause = fields.invalid("spec.clusterIPs", shown, what + str(refused))
            raise errors.invalid(SERVICE, new.metadata.name, [cause]) from None
        if not dry_run:
            claim.taken_addresses.append(address)
        spec.clusterIP = address
        if not spec.clusterIPs:
            spec.clusterIPs.append(address)

    async def _asked(self, service: core.Service, asked: str, dry_run: bool) -> str:
        address = ipaddress.IPv4Address(asked)
        if not any(address in each for each in self._objects.ready_ranges()):
            raise _Refused("the provided network does not match the current range")
        if dry_run:
            return asked
        if not await self._take(service, asked):
            raise _Refused("provided IP is already allocated")
        return asked

    async def _next(self, service: core.Service, dry_run: bool) -> str:
        for each in self._objects.ready_ranges():
            for address in each.candidates(self._rng):
                if self._objects.known(address):
                    continue
                if dry_run or await self._take(service, address):
                    return address
        raise _Refused("range is full")

    async def _take(self, service: core.Service, address: str) -> bool:
        """Reserve an address for this Service; return False when another Service has it.

        Raises: StatusError 5xx, _Refused.
        """
        try:
            await self._objects.create(addresses.address_object(address, service))
        except StatusError as error:
            if errors.is_already_exists(error):
                return False
            if error.code < 500:
                raise _Refused(error.message) from None
            raise
        return True

    # Ports.

    async def _node_ports(
        self, new: core.Service, old: core.ServiceSpec | None, claim: Claim, *, dry_run: bool
    ) -> None:
        def change(taken: node_ports.TakenPorts) -> PortChange:
            trial.CopyFrom(new.spec)
            return node_ports.change(trial, old, taken, self._rng)

        if not node_ports.concerns(new.spec, old):
            return
        trial = core.ServiceSpec()
        try:
            made = await self._ports.change(change, write=not dry_run)
        except node_ports.PortRefused as refused:
            raise errors.invalid(SERVICE, new.metadata.name, [refused.cause]) from None
        new.spec.CopyFrom(trial)
        if not dry_run:
            claim.taken_ports += made.allocated
            claim.old_ports += made.released

    # Releasing.

    async def _give_back(self, owner: core.Service, given: Iterable[str], ports: Iterable[int]) -> None:
        """Release also while the request is being cancelled. The repair handles failures."""
        given, ports = list(given), list(ports)
        if not given and not ports:
            return
        with anyio.move_on_after(GIVE_BACK_SECONDS_MAX, shield=True):
            try:
                for address in given:
                    found = await self._objects.find(address)
                    if found is not None and addresses.belongs_to(found.message, owner):
                        await self._objects.delete(found)
                if ports:
                    await self._ports.release(ports)
            except (StatusError, StorageError) as error:
                _log.warning(
                    "Addresses of a Service are left to the repair",
                    addresses=",".join(given),
                    ports=",".join(map(str, ports)),
                    error=str(error),
                )


class _Refused(Exception):
    """The reason why there is no address."""


__all__ = ["DEFAULT_ADDRESSES", "DEFAULT_PORTS", "Allocator", "Claim", "Claims"]
