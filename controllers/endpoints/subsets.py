"""The Endpoints of a Service that selects pods, and its canonical subsets. Pure.

Source: kube-controller-manager 1.36, endpoints-controller, and RepackSubsets. Subsets are in the order of
their addresses and ports; upstream's is that of hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nominee.controllers.endpoints.pods import (
    HEADLESS_LABEL,
    NO_CLUSTER_IP,
    AddressType,
    addresses_of,
    endpoint_port,
    hostname_of,
    is_headless,
    is_ready,
    may_be_endpoint,
    port_of,
    target_of,
)
from nominee.controllers.endpoints.trigger_time import annotate
from nominee.machinery.api.pb import core

ADDRESSES_MAX: Final = 1000
"""Addresses in one Endpoints; the rest is left out."""
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
MANAGED_BY_LABEL: Final = "endpoints.kubernetes.io/managed-by"
CONTROLLER: Final = "endpoint-controller"

Port = tuple[str, str, int, str | None]
"""Name, protocol, number (-1 for no port at all), application protocol."""
Address = tuple[str, str]
"""IP and the target's uid."""


def desired_subsets(service: core.Service, pods: Iterable[core.Pod]) -> list[core.EndpointSubset]:
    """Return the subsets of a Service's pods, in canonical form and of any length."""
    not_ready = service.spec.publishNotReadyAddresses
    family = _family(service)
    found: list[core.EndpointSubset] = []
    for pod in pods:
        if not may_be_endpoint(pod, terminating=not_ready):
            continue
        address = next(iter(addresses_of(pod, family)), "")
        if not address:
            continue
        row = core.EndpointAddress(ip=address, nodeName=pod.spec.nodeName, targetRef=target_of(pod))
        row.hostname = hostname_of(pod, service)
        for port in _ports(service, pod):
            subset = core.EndpointSubset(ports=[port] if port is not None else [])
            rows = subset.addresses if not_ready or is_ready(pod) else subset.notReadyAddresses
            rows.add().CopyFrom(row)
            found.append(subset)
    return repack(found)


def desired(
    service: core.Service, pods: Iterable[core.Pod], current: core.Endpoints | None, time: int
) -> core.Endpoints | None:
    """Return the Endpoints to write, None where the current ones are right; `time` is the trigger time."""
    subsets = desired_subsets(service, pods)
    over = truncate(subsets)
    labels = dict(service.metadata.labels) | {MANAGED_BY_LABEL: CONTROLLER}
    labels.pop(HEADLESS_LABEL, None)
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    if (
        current is not None
        and labels == dict(current.metadata.labels)
        and over == (OVER_CAPACITY in current.metadata.annotations)
        and [_subset_key(s) for s in current.subsets] == [_subset_key(s) for s in subsets]
    ):
        return None
    new = core.Endpoints()
    if current is not None:
        new.CopyFrom(current)
        del new.subsets[:]
        new.metadata.labels.clear()
    new.metadata.name, new.metadata.namespace = service.metadata.name, service.metadata.namespace
    new.metadata.labels.update(labels)
    annotate(new.metadata, time)
    new.metadata.annotations.pop(OVER_CAPACITY, None)
    if over:
        new.metadata.annotations[OVER_CAPACITY] = "truncated"
    new.subsets.extend(subsets)
    return new


def repack(subsets: Iterable[core.EndpointSubset]) -> list[core.EndpointSubset]:
    """Return equivalent subsets of which no two have the same addresses, or the same port of one address.

    An address that is both ready and not ready counts as not ready.
    """
    rows: dict[Address, core.EndpointAddress] = {}
    ready_by_port: dict[Port, dict[Address, bool]] = {}
    for subset in subsets:
        ports = [_port_key(port) for port in subset.ports] or [("", "", -1, None)]
        for ready, addresses in ((True, subset.addresses), (False, subset.notReadyAddresses)):
            for address in addresses:
                key = address.ip, address.targetRef.uid
                rows.setdefault(key, address)
                for port in ports:
                    own = ready_by_port.setdefault(port, {})
                    own[key] = own.get(key, True) and ready
    ports_by_addresses: dict[tuple[tuple[Address, bool], ...], list[Port]] = {}
    for port, states in ready_by_port.items():
        ports_by_addresses.setdefault(tuple(sorted(states.items())), []).append(port)
    return [_subset(states, ports, rows) for states, ports in sorted(ports_by_addresses.items())]


def truncate(subsets: Sequence[core.EndpointSubset]) -> bool:
    """Leave ADDRESSES_MAX addresses in all, in place; report whether there were more.

    Ready ones come first. What is left out is spread over the subsets in proportion to their sizes.
    """
    ready = sum(len(subset.addresses) for subset in subsets)
    not_ready = sum(len(subset.notReadyAddresses) for subset in subsets)
    if ready + not_ready <= ADDRESSES_MAX:
        return False
    over = ready > ADDRESSES_MAX
    room = most = ADDRESSES_MAX if over else ADDRESSES_MAX - ready
    total = ready if over else not_ready
    for subset in subsets:
        rows = subset.addresses if over else subset.notReadyAddresses
        share = min(room, -(-len(rows) * most // total))
        del rows[share:]
        room -= len(rows)
        if over:
            del subset.notReadyAddresses[:]
    return True


def _family(service: core.Service) -> AddressType:
    """Return the family of the addresses: the Service's first, else its own address's."""
    first = next(iter(service.spec.ipFamilies), "")
    if first:
        return "IPv6" if first == "IPv6" else "IPv4"
    return "IPv6" if ":" in service.spec.clusterIP else "IPv4"


def _ports(service: core.Service, pod: core.Pod) -> list[core.EndpointPort | None]:
    if not service.spec.ports:
        return [None] if service.spec.clusterIP == NO_CLUSTER_IP else []
    found: list[core.EndpointPort | None] = []
    for port in service.spec.ports:
        number = port_of(pod, port)
        if number is not None:
            found.append(endpoint_port(core.EndpointPort, port, number))
    return found


def _port_key(port: core.EndpointPort) -> Port:
    return port.name, port.protocol, port.port, port.appProtocol if port.HasField("appProtocol") else None


def _address_key(address: core.EndpointAddress) -> tuple[str, ...]:
    target = address.targetRef
    return address.ip, address.hostname, address.nodeName, target.namespace, target.name, target.uid


def _subset_key(subset: core.EndpointSubset) -> tuple[object, ...]:
    return (
        [_address_key(address) for address in subset.addresses],
        [_address_key(address) for address in subset.notReadyAddresses],
        [_port_key(port) for port in subset.ports],
    )


def _subset(
    states: Iterable[tuple[Address, bool]], ports: Iterable[Port], rows: dict[Address, core.EndpointAddress]
) -> core.EndpointSubset:
    made = core.EndpointSubset()
    for key, ready in states:
        (made.addresses if ready else made.notReadyAddresses).add().CopyFrom(rows[key])
    for name, protocol, number, application in sorted(ports, key=repr):
        if number == -1:
            continue
        port = made.ports.add(name=name, protocol=protocol, port=number)
        if application is not None:
            port.appProtocol = application
    return made
