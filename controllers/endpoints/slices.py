"""The EndpointSlices of a Service that selects pods. Pure.

One list of slices per address family and list of ports; a family without endpoints has one empty slice.
Source: kube-controller-manager 1.36, k8s.io/endpointslice (Reconcile, reconcileByAddressType, finalize).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from nominee.controllers.endpoints import hints
from nominee.controllers.endpoints.filling import Labels, PortsKey, Writes, fill, ports_key
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
from nominee.machinery.api.names import dns_subdomain_problems
from nominee.machinery.api.objects import copy_of, is_owned_by, is_terminating, owner_reference
from nominee.machinery.api.pb import core, discovery

CONTROLLER: Final = "endpointslice-controller.k8s.io"
SERVICE_LABEL: Final = "kubernetes.io/service-name"
MANAGED_BY_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_RESERVED: Final = (SERVICE_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL)

NodeOf = Callable[[str], core.Node | None]


@dataclass(frozen=True, slots=True)
class SliceReconciliation:
    """The writes for a Service, and the pods left out since their nodes do not exist."""

    writes: Writes
    without_node: tuple[core.Pod, ...]


def plan(
    service: core.Service,
    pods: Iterable[core.Pod],
    node_of: NodeOf,
    existing: Iterable[discovery.EndpointSlice],
) -> SliceReconciliation:
    """Return the writes that bring a Service's slices, `existing`, to its pods."""
    writes, left_out = Writes(), []
    types = address_types(service)
    slices = list(existing)
    candidates = []
    for pod in pods:
        if not may_be_endpoint(pod, terminating=True):
            continue
        if node_of(pod.spec.nodeName) is None and not service.spec.publishNotReadyAddresses:
            left_out.append(pod)
        else:
            candidates.append(pod)
    for address_type in types:
        own = [found for found in slices if found.addressType == address_type]
        writes.extend(_of_type(service, candidates, node_of, own, address_type))
    writes.delete += [found for found in slices if found.addressType not in types]
    if is_terminating(service):
        # The garbage collector deletes the slices of a terminating Service: none may be created after that.
        writes.create.clear()
    return SliceReconciliation(writes, tuple(left_out))


def address_types(service: core.Service) -> list[AddressType]:
    """Return the address families that a Service has endpoints of."""
    families: list[AddressType] = [name for name in ("IPv4", "IPv6") if name in service.spec.ipFamilies]
    if families:
        return families
    if service.spec.clusterIP and service.spec.clusterIP != NO_CLUSTER_IP:
        return ["IPv6" if ":" in service.spec.clusterIP else "IPv4"]
    return ["IPv4", "IPv6"]


def name_prefix(name: str) -> str:
    """Return the generateName of slices: with a dash, where the name is not too long for one."""
    return f"{name}-" if not dns_subdomain_problems(f"{name}x") else name


def labels_of(service: core.Service) -> Labels:
    """Return the labels that a Service's slices have: its own, and the reserved ones."""
    labels = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    return labels | {SERVICE_LABEL: service.metadata.name, MANAGED_BY_LABEL: CONTROLLER}


def recycle(writes: Writes, may: Callable[[discovery.EndpointSlice], bool]) -> None:
    """Turn pairs of a deletion and a creation into updates, in place; `may` says of which slices."""
    for gone in list(writes.delete):
        if not writes.create:
            return
        new = writes.create[-1]
        if gone.addressType == new.addressType and may(gone):
            writes.create.pop()
            writes.delete.remove(gone)
            new.metadata.name = gone.metadata.name
            new.metadata.resourceVersion = gone.metadata.resourceVersion
            writes.update.append(new)


def _of_type(
    service: core.Service,
    pods: Sequence[core.Pod],
    node_of: NodeOf,
    existing: Sequence[discovery.EndpointSlice],
    address_type: AddressType,
) -> Writes:
    by_ports: dict[PortsKey, list[discovery.EndpointSlice]] = {}
    writes = Writes()
    for found in existing:
        if is_owned_by(found, service):
            by_ports.setdefault(ports_key(found.ports), []).append(found)
        else:
            writes.delete.append(found)
    for key, (ports, endpoints) in _desired(service, pods, node_of, address_type).items():
        new_slice = partial(_new_slice, service, address_type, ports)
        labels = partial(_missing_labels, service)
        writes.extend(fill(by_ports.pop(key, []), endpoints, labels, new_slice))
    for left in by_ports.values():
        writes.delete += left
    _keep_one(writes, existing, _new_slice(service, address_type, []))
    _hint(writes, existing, hints.distribution_of(service))
    recycle(writes, lambda found: is_owned_by(found, service))
    return writes


def _desired(
    service: core.Service, pods: Iterable[core.Pod], node_of: NodeOf, address_type: AddressType
) -> dict[PortsKey, tuple[list[discovery.EndpointPort], list[discovery.Endpoint]]]:
    """Return lists of ports and the endpoints that have them; only the ports of pods without an address."""
    found: dict[PortsKey, tuple[list[discovery.EndpointPort], list[discovery.Endpoint]]] = {}
    by_numbers: dict[tuple[int | None, ...], list[discovery.Endpoint]] = {}
    for pod in pods:
        numbers = tuple(port_of(pod, port) for port in service.spec.ports)
        endpoints = by_numbers.get(numbers)
        if endpoints is None:
            ports = _ports(service, numbers)
            endpoints = found.setdefault(ports_key(ports), (ports, []))[1]
            by_numbers[numbers] = endpoints
        endpoint = _endpoint(service, pod, node_of(pod.spec.nodeName), address_type)
        if endpoint.addresses:
            endpoints.append(endpoint)
    return found


def _ports(service: core.Service, numbers: Iterable[int | None]) -> list[discovery.EndpointPort]:
    """Return the Service's ports with their numbers in a pod; ports that it lacks are omitted."""
    numbered = zip(service.spec.ports, numbers, strict=True)
    return [endpoint_port(discovery.EndpointPort, port, n) for port, n in numbered if n is not None]


def _endpoint(
    service: core.Service, pod: core.Pod, node: core.Node | None, address_type: AddressType
) -> discovery.Endpoint:
    serving, terminating = is_ready(pod), is_terminating(pod)
    made = discovery.Endpoint(addresses=addresses_of(pod, address_type), targetRef=target_of(pod))
    made.conditions.ready = service.spec.publishNotReadyAddresses or (serving and not terminating)
    made.conditions.serving, made.conditions.terminating = serving, terminating
    if pod.spec.nodeName:
        made.nodeName = pod.spec.nodeName
    zone = node.metadata.labels.get(ZONE_LABEL, "") if node is not None else ""
    if zone:
        made.zone = zone
    hostname = hostname_of(pod, service)
    if hostname:
        made.hostname = hostname
    return made


def _new_slice(
    service: core.Service, address_type: AddressType, ports: Iterable[discovery.EndpointPort]
) -> discovery.EndpointSlice:
    made = discovery.EndpointSlice(addressType=address_type, ports=ports)
    made.metadata.generateName = name_prefix(service.metadata.name)
    made.metadata.namespace = service.metadata.namespace
    made.metadata.labels.update(labels_of(service))
    made.metadata.ownerReferences.add().CopyFrom(owner_reference(service))
    return made


def _missing_labels(service: core.Service, found: discovery.EndpointSlice) -> Labels | None:
    """Return the labels that a slice should have, None where all but the reserved ones are right."""
    desired = labels_of(service)

    def own(labels: Iterable[tuple[str, str]]) -> Labels:
        return {name: value for name, value in labels if name not in _RESERVED}

    return None if own(found.metadata.labels.items()) == own(desired.items()) else desired


def _keep_one(
    writes: Writes, existing: Sequence[discovery.EndpointSlice], placeholder: discovery.EndpointSlice
) -> None:
    """See to it that a slice is left, so that consumers see that the Service has no endpoints."""
    if len(writes.delete) < len(existing) or writes.create:
        return
    if len(writes.delete) == 1 and _is_like(writes.delete[0], placeholder):
        writes.delete.clear()
    else:
        writes.create.append(placeholder)


def _is_like(found: discovery.EndpointSlice, placeholder: discovery.EndpointSlice) -> bool:
    return (
        not found.endpoints
        and not found.ports
        and dict(found.metadata.labels) == dict(placeholder.metadata.labels)
        and [owner.uid for owner in found.metadata.ownerReferences]
        == [owner.uid for owner in placeholder.metadata.ownerReferences]
    )


def _hint(writes: Writes, existing: Iterable[discovery.EndpointSlice], distribution: str) -> None:
    """Set the hints of all slices that stay; one that was not to be written may have to be."""
    for each in (*writes.create, *writes.update):
        hints.hint(each, distribution)
    touched = {found.metadata.name for found in (*writes.update, *writes.delete)}
    for found in existing:
        if found.metadata.name not in touched:
            copy = copy_of(found)
            if hints.hint(copy, distribution):
                writes.update.append(copy)
