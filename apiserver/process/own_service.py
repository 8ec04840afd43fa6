"""The Service `kubernetes` in the namespace default, with its endpoints: how pods find the API servers.

The API server creates them at its start and reconciles them every ten seconds. The Service has the first
address of the Service range. No endpoint may have a loopback address, so a server that serves on loopback
publishes an address of the machine, as upstream does; without one there are no endpoints.

One of several servers publishes all that have a lease (`server_leases.py`). An EndpointSlice has one list of
ports for all its endpoints: there is a slice for each port, and a subset of the Endpoints.

Source: kube-apiserver 1.36, pkg/controlplane/controller/kubernetesservice and reconcilers.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import anyio

from nominee.apiserver.objects.requests import (
    Delete,
    List,
    ListOptions,
    RegistryAPI,
    Update,
    create_if_missing,
    get_if_exists,
)
from nominee.apiserver.process.server_leases import PORT, Endpoint, ServerLeases
from nominee.apiserver.registry.services.allocation import DEFAULT_ADDRESSES
from nominee.apiserver.storage.interface import StorageError
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, discovery, meta
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire import presence
from nominee.machinery.wire.envelope import EnvelopeError

AGAIN_SECONDS = 10.0
ATTEMPTS_MAX, RETRY_SECONDS = 5, 0.1
WITHDRAW_SECONDS_MAX = 2.0
NAME, NAMESPACE = "kubernetes", "default"
_SERVICE_LABEL = "kubernetes.io/service-name"
_SOMEWHERE = ("192.0.2.1", 9)
_ERRORS = (StatusError, StorageError, EnvelopeError)
_log = logs.get()


async def run(registry: RegistryAPI, address: str, clock: Clock, leases: ServerLeases | None = None) -> None:
    """Reconcile the Service and its endpoints until cancelled; `address` is this server's `host:port`.

    With `leases` the server is one of several, and withdraws its endpoint at the end.
    """
    host, _, port = address.rpartition(":")
    own = [Endpoint(int(port), shown) for shown in _shown(host.strip("[]"))]
    publisher = _Publisher(registry, own, int(port), clock, leases)
    try:
        while True:
            await publisher.publish()
            await clock.sleep(AGAIN_SECONDS)
    finally:
        with anyio.move_on_after(WITHDRAW_SECONDS_MAX, shield=True):
            await publisher.withdraw()


@dataclass(frozen=True, slots=True)
class _Publisher:
    """Writes the Service and its endpoints for one server."""

    registry: RegistryAPI
    own: Sequence[Endpoint]
    port: int
    clock: Clock
    leases: ServerLeases | None

    async def publish(self) -> None:
        """Renew this server's lease, if it is one of several, and reconcile."""
        try:
            if self.leases is not None:
                await self.leases.renew(self.own)
            await self._reconcile_with_others()
        except _ERRORS as error:
            _log.warning("the Service kubernetes cannot be reconciled", error=str(error))

    async def withdraw(self) -> None:
        """Remove this server's lease and its endpoint, if it is one of several."""
        if self.leases is None:
            return
        try:
            await self.leases.remove(self.own)
            await self._reconcile_with_others()
        except _ERRORS as error:
            _log.warning("the endpoint of the Service kubernetes cannot be removed", error=str(error))

    async def _reconcile_with_others(self) -> None:
        """Reconcile with the servers that live now; another of several may write at the same time."""
        if self.leases is None:
            await self._reconcile(self.own)
            return
        for left in reversed(range(ATTEMPTS_MAX)):
            try:
                await self._reconcile(await self.leases.live())
                return
            except StatusError:
                if not left:
                    raise
                await self.clock.sleep(RETRY_SECONDS)

    async def _reconcile(self, servers: Sequence[Endpoint]) -> None:
        addresses: dict[int, list[str]] = {}
        for each in sorted(servers):
            addresses.setdefault(each.port, []).append(each.address)
        addresses = addresses or {self.port: []}
        await self._keep_service(_service(min(addresses)))
        await self._keep(_endpoints(addresses))
        names = [NAME, *(f"{NAME}-{number}" for number in range(2, len(addresses) + 1))]
        for name, (port, found) in zip(names, addresses.items(), strict=True):
            await self._keep(_slice(name, found, port))
        await self._delete_slices(keep=names)

    async def _keep_service(self, desired: core.Service) -> None:
        """Reconcile the Service's ports; other fields belong to the client that last changed them."""
        live = await self._live(desired)
        if live is None:
            await create_if_missing(self.registry, desired)
            return
        port, ports = desired.spec.ports[0], live.spec.ports
        if [(p.name, p.port, p.targetPort.intVal) for p in ports] == [("https", 443, port.targetPort.intVal)]:
            return
        changed: core.Service = copy_of(live)
        del changed.spec.ports[:]
        changed.spec.ports.add().CopyFrom(port)
        await self.registry.perform(Update(kinds.SERVICE, NAMESPACE, NAME, "", changed))

    async def _keep(self, desired: Any) -> None:
        live = await self._live(desired)
        if live is None:
            await create_if_missing(self.registry, desired)
            return
        changed = copy_of(desired)
        changed.metadata.CopyFrom(live.metadata)
        changed.metadata.labels.update(desired.metadata.labels)
        presence.fill(changed)
        if changed != live:
            await self.registry.perform(
                Update(kinds.of(desired), NAMESPACE, desired.metadata.name, "", changed)
            )

    async def _delete_slices(self, *, keep: Sequence[str]) -> None:
        """Delete the Service's other slices, such as one of a server that stopped."""
        options = ListOptions(label_selector=f"{_SERVICE_LABEL}={NAME}", resource_version="0")
        for each in (await self.registry.perform(List(kinds.ENDPOINT_SLICE, NAMESPACE, options))).items:
            if each.name not in keep:
                with errors.ignoring(errors.is_not_found):
                    await self.registry.perform(
                        Delete(kinds.ENDPOINT_SLICE, NAMESPACE, each.name, meta.DeleteOptions())
                    )

    async def _live(self, desired: Any) -> Any:
        """Return the object as stored; the only server reads the cache, which has all of its writes."""
        kind, name, version = kinds.of(desired), desired.metadata.name, "0" if self.leases is None else ""
        return await get_if_exists(self.registry, kind, NAMESPACE, name, resource_version=version)


def _shown(host: str) -> list[str]:
    """Return the addresses by which other machines reach this server."""
    try:
        own = ipaddress.ip_address(host)
    except ValueError:
        return []
    if own.is_loopback or own.is_unspecified:
        found = _of_machine()
        return [] if not found or ipaddress.ip_address(found).is_loopback else [found]
    return [host]


def _of_machine() -> str:
    """Return the machine's address on its default route, or "" without a route; nothing is sent."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def _service(port: int) -> core.Service:
    made = core.Service()
    made.metadata.name, made.metadata.namespace = NAME, NAMESPACE
    made.metadata.labels.update({"component": "apiserver", "provider": "kubernetes"})
    made.spec.type = "ClusterIP"
    made.spec.clusterIP = str(next(DEFAULT_ADDRESSES.hosts()))
    made.spec.ports.add(**PORT, port=443).targetPort.intVal = port
    made.spec.sessionAffinity = "None"
    return made


def _endpoints(addresses: Mapping[int, Sequence[str]]) -> core.Endpoints:
    """Return the Endpoints of addresses by port."""
    made = core.Endpoints()
    made.metadata.name, made.metadata.namespace = NAME, NAMESPACE
    made.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = "true"
    for port, found in addresses.items():
        if found:
            subset = made.subsets.add()
            subset.ports.add(**PORT, port=port)
            for each in found:
                subset.addresses.add(ip=each)
    return made


def _slice(name: str, addresses: Sequence[str], port: int) -> discovery.EndpointSlice:
    made = discovery.EndpointSlice()
    made.metadata.name, made.metadata.namespace = name, NAMESPACE
    made.metadata.labels[_SERVICE_LABEL] = NAME
    made.addressType = "IPv6" if any(":" in each for each in addresses) else "IPv4"
    made.ports.add(**PORT, port=port)
    for each in addresses:
        made.endpoints.add(addresses=[each]).conditions.ready = True
    return made
