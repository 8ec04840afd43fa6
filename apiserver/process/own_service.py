"""The Service `kubernetes` in the namespace default, with its endpoints: how pods find the API server.

The API server creates them at its start and reconciles them every ten seconds. The Service has the first
address of the Service range. No endpoint may have a loopback address, so a server that serves on loopback
publishes an address of the machine, as upstream does; without one there are no endpoints.

Source: kube-apiserver 1.36, pkg/controlplane/controller/kubernetesservice and reconcilers.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import closing
from typing import Any

from apiserver.objects.requests import RegistryAPI
from apiserver.registry.services.allocation import DEFAULT_ADDRESSES
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.pb import core, discovery
from machinery.runtime import logs
from machinery.runtime.clock import Clock
from machinery.wire import presence

AGAIN_SECONDS = 10.0
NAME, NAMESPACE = "kubernetes", "default"
_PORT = {"name": "https", "protocol": "TCP"}
_SOMEWHERE = ("192.0.2.1", 9)
_log = logs.get()


async def run(registry: RegistryAPI, address: str, clock: Clock) -> None:
    """Reconcile the Service and its endpoints until cancelled; `address` is this server's `host:port`."""
    host, _, port = address.rpartition(":")
    addresses = _shown(host.strip("[]"))
    service, lists = _service(int(port)), (_endpoints(addresses, int(port)), _slice(addresses, int(port)))
    while True:
        try:
            await _keep_service(registry, service)
            for each in lists:
                await _keep(registry, each)
        except StatusError as error:
            _log.warning("the Service kubernetes cannot be reconciled", error=str(error))
        await clock.sleep(AGAIN_SECONDS)


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
    made.spec.ports.add(**_PORT, port=443).targetPort.intVal = port
    made.spec.sessionAffinity = "None"
    return made


def _endpoints(addresses: list[str], port: int) -> core.Endpoints:
    made = core.Endpoints()
    made.metadata.name, made.metadata.namespace = NAME, NAMESPACE
    made.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = "true"
    if addresses:
        subset = made.subsets.add()
        subset.ports.add(**_PORT, port=port)
        for each in addresses:
            subset.addresses.add(ip=each)
    return made


def _slice(addresses: list[str], port: int) -> discovery.EndpointSlice:
    made = discovery.EndpointSlice()
    made.metadata.name, made.metadata.namespace = NAME, NAMESPACE
    made.metadata.labels["kubernetes.io/service-name"] = NAME
    made.addressType = "IPv6" if any(":" in each for each in addresses) else "IPv4"
    made.ports.add(**_PORT, port=port)
    for each in addresses:
        made.endpoints.add(addresses=[each]).conditions.ready = True
    return made


async def _keep_service(registry: RegistryAPI, wanted: core.Service) -> None:
    """Reconcile the Service's ports; other fields belong to the client that last changed them."""
    known = await _known(registry, wanted)
    if known is None:
        await _make(registry, wanted)
        return
    want, ports = wanted.spec.ports[0], known.spec.ports
    if [(p.name, p.port, p.targetPort.intVal) for p in ports] == [("https", 443, want.targetPort.intVal)]:
        return
    changed = core.Service()
    changed.CopyFrom(known)
    del changed.spec.ports[:]
    changed.spec.ports.add().CopyFrom(want)
    await registry.update(kinds.SERVICE, NAMESPACE, NAME, "", changed)


async def _keep(registry: RegistryAPI, wanted: Any) -> None:
    known = await _known(registry, wanted)
    if known is None:
        await _make(registry, wanted)
        return
    changed = type(wanted)()
    changed.CopyFrom(wanted)
    changed.metadata.CopyFrom(known.metadata)
    changed.metadata.labels.update(wanted.metadata.labels)
    presence.fill(changed)
    if changed != known:
        await registry.update(kinds.of(wanted), NAMESPACE, NAME, "", changed)


async def _known(registry: RegistryAPI, wanted: Any) -> Any:
    try:
        return (await registry.get(kinds.of(wanted), NAMESPACE, NAME, resource_version="0")).message
    except StatusError as error:
        if errors.is_not_found(error):
            return None
        raise


async def _make(registry: RegistryAPI, wanted: Any) -> None:
    made = type(wanted)()
    made.CopyFrom(wanted)
    try:
        await registry.create(kinds.of(wanted), NAMESPACE, made)
    except StatusError as error:
        if not errors.is_already_exists(error):
            raise
