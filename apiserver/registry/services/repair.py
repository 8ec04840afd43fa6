"""Repair of addresses and ports that crashed servers left behind without a Service, and the reverse.

Also creates the IPAddresses of Services from before that kind existed. Every API server runs it at its start
and at intervals; conflicts between two servers are harmless.

Source: kube-apiserver 1.36, ipallocator/controller/repairip.go, portallocator/controller/repair.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.services import addresses, node_ports
from nominee.apiserver.registry.services.node_ports import TakenPorts
from nominee.apiserver.registry.services.objects import ServerObjects
from nominee.apiserver.registry.services.port_store import PortStore
from nominee.apiserver.registry.store import Store
from nominee.apiserver.storage.interface import StorageError
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, networking
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

REPAIR_SECONDS = 60.0
GRACE_SECONDS = 60.0
"""An address without a Service may belong to a request in progress for this long (upstream's timeout)."""
SIGHTINGS = 3
"""A port without a Service is released after so many sightings, for the same reason."""
_ATTEMPTS_MAX = 5
_log = logs.get()
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """IPAddresses to delete and then to create; `duplicates` are Services that an admin must recreate."""

    delete: list[CachedObject]
    create: list[networking.IPAddress]
    duplicates: list[str]


def plan_addresses(
    services: Sequence[core.Service],
    found: Sequence[CachedObject],
    ranges: Sequence[addresses.AddressRange],
    now: float,
) -> AddressPlan:
    """Compare Services with the IPAddresses; `now` in epoch seconds. Pure."""
    by_name: dict[str, CachedObject] = {each.name: each for each in found}
    owners: dict[_Key, core.Service] = {_key(each): each for each in services}
    plan = AddressPlan([], [], [])
    replaced = set()
    for service in services:
        for address in _own_addresses(service, ranges):
            current = by_name.get(address)
            if current is not None and _is_right(current.message, service):
                continue
            if current is not None and _has_another_owner(current.message, service, owners):
                plan.duplicates.append(f"{service.metadata.namespace}/{service.metadata.name} {address}")
                continue
            if address in replaced:
                continue
            replaced.add(address)
            if current is not None:
                plan.delete.append(current)
            plan.create.append(addresses.address_object(address, service))
    for each in found:
        managed = each.message.metadata.labels.get(addresses.MANAGED_BY_LABEL) == addresses.MANAGED_BY
        if managed and each.name not in replaced and _has_leaked(each.message, owners, now):
            plan.delete.append(each)
    return plan


def _key(service: core.Service) -> _Key:
    return service.metadata.namespace, service.metadata.name


def _own_addresses(service: core.Service, ranges: Sequence[addresses.AddressRange]) -> list[str]:
    if not addresses.is_addressed(service.spec):
        return []
    given = list(service.spec.clusterIPs) or [service.spec.clusterIP]
    return [
        text
        for text in given
        if text and ":" not in text and any(ipaddress.IPv4Address(text) in each for each in ranges)
    ]


def _is_right(found: networking.IPAddress, service: core.Service) -> bool:
    return addresses.belongs_to(found, service) and addresses.has_labels(found)


def _has_another_owner(
    found: networking.IPAddress, service: core.Service, owners: Mapping[_Key, core.Service]
) -> bool:
    if not addresses.refers_to_service(found) or addresses.belongs_to(found, service):
        return False
    other = owners.get((found.spec.parentRef.namespace, found.spec.parentRef.name))
    return other is not None and found.metadata.name in other.spec.clusterIPs


def _has_leaked(found: networking.IPAddress, owners: Mapping[_Key, core.Service], now: float) -> bool:
    if not addresses.refers_to_service(found):
        return True
    owner = owners.get((found.spec.parentRef.namespace, found.spec.parentRef.name))
    if owner is not None and found.metadata.name in owner.spec.clusterIPs:
        return False
    return now - found.metadata.creationTimestamp.seconds > GRACE_SECONDS


@dataclass(slots=True)
class PortLeaks:
    """The number of sightings of each port that was allocated without a Service."""

    sightings: dict[int, int] = field(default_factory=dict)

    def rebuilt(self, services: Sequence[core.Service], stored: TakenPorts) -> TakenPorts:
        """Return the ports that should be allocated, and count one more sighting of the others."""
        used = {port for each in services for port in node_ports.numbers(each.spec) if port in stored.range}
        unused = [port for port in stored if port not in used]
        self.sightings = {port: self.sightings.get(port, 0) + 1 for port in unused}
        leaked = [port for port, count in self.sightings.items() if count > SIGHTINGS]
        return stored.with_ports(used).without(leaked)


class Repair:
    """Repairs all addresses and ports: `once` at the start, `run` as long as the server runs."""

    def __init__(self, store: Store, objects: ServerObjects, ports: PortStore, clock: Clock) -> None:
        self._store = store
        self._objects = objects
        self._ports = ports
        self._clock = clock
        self._leaks = PortLeaks()
        self._finished = False

    def check(self) -> None:
        """Raise RuntimeError until everything was repaired once."""
        if not self._finished:
            raise RuntimeError("the addresses and ports of Services were not repaired yet")

    async def run(self) -> None:
        """Repair every REPAIR_SECONDS until cancelled."""
        while True:
            await self._clock.sleep(REPAIR_SECONDS)
            try:
                await self.once()
            except (StatusError, StorageError) as error:
                _log.warning("The addresses of Services cannot be repaired", error=str(error))

    async def once(self) -> None:
        """Repair the current state.

        Raises: StatusError, StorageError.
        """
        await self._repair_addresses()
        await self._repair_ports()
        self._finished = True

    async def _services(self) -> list[core.Service]:
        return [each.message for each in await self._store.list(kinds.SERVICE)]

    async def _repair_addresses(self) -> None:
        # Read the addresses first: one that is taken meanwhile must not seem to lack its Service.
        found = await self._store.list(kinds.IP_ADDRESS)
        services = await self._services()
        plan = plan_addresses(services, found, self._objects.ready_ranges(), self._clock.now())
        for text in plan.duplicates:
            _log.warning(
                "An address was assigned to several Services; please recreate this one", service=text
            )
        for stale in plan.delete:
            _log.warning("An IPAddress without its Service is deleted", address=stale.name)
            await self._objects.delete(stale)
        for missing in plan.create:
            _log.warning(
                "The address of a Service is not allocated; repairing", address=missing.metadata.name
            )
            with errors.ignoring(errors.is_already_exists):
                await self._objects.create(missing)

    async def _repair_ports(self) -> None:
        sightings = dict(self._leaks.sightings)
        for _ in range(_ATTEMPTS_MAX):
            # Read the ports first, as above; a port that is taken in between makes the write below fail.
            stored, revision = await self._ports.read()
            self._leaks.sightings = dict(sightings)
            rebuilt = self._leaks.rebuilt(await self._services(), stored)
            if rebuilt == stored and revision:
                return
            if await self._ports.replace(rebuilt, revision):
                _log.info("Node ports repaired", taken=rebuilt.bits.bit_count())
                return
