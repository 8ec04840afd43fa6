"""The EndpointSlices that mirror Endpoints which a client keeps for a Service without a selector. Pure.

Source: kube-controller-manager 1.36, endpointslice-mirroring-controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from nominee.controllers.endpoints.filling import (
    EndpointKey,
    PortsKey,
    Writes,
    endpoint_key,
    ports_key,
    same_endpoint,
)
from nominee.controllers.endpoints.pods import TRIGGER_TIME, AddressType, endpoint_port
from nominee.controllers.endpoints.slices import MANAGED_BY_LABEL, SERVICE_LABEL, name_prefix, recycle
from nominee.controllers.endpoints.subsets import repack
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api.objects import is_terminating, owner_reference
from nominee.machinery.api.pb import core, discovery

CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
SKIP_LABEL: Final = "endpointslice.kubernetes.io/skip-mirror"
LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
ENDPOINTS_MAX: Final = 1000
"""Addresses of one subset that are mirrored, upstream's --mirroring-max-endpoints-per-subset."""
_NOT_MIRRORED: Final = (TRIGGER_TIME, "kubectl.kubernetes.io/last-applied-configuration")

_Group = tuple[PortsKey, AddressType]


@dataclass(slots=True)
class _Desired:
    ports: list[discovery.EndpointPort]
    endpoints: dict[EndpointKey, discovery.Endpoint]


def is_mirrored(endpoints: core.Endpoints) -> bool:
    """Report whether Endpoints are mirrored: unless a label forbids it, or they record a leader election."""
    return (
        endpoints.metadata.labels.get(SKIP_LABEL) != "true"
        and LEADER_ANNOTATION not in endpoints.metadata.annotations
    )


def plan(
    endpoints: core.Endpoints, existing: Iterable[discovery.EndpointSlice]
) -> tuple[Writes, list[PlannedEvent]]:
    """Return the writes that bring the mirroring slices to the Endpoints, and the events to record."""
    desired, warnings = _desired(endpoints)
    by_group: dict[_Group, list[discovery.EndpointSlice]] = {}
    for found in existing:
        group: _Group = ports_key(found.ports), "IPv6" if found.addressType == "IPv6" else "IPv4"
        by_group.setdefault(group, []).append(found)
    writes = Writes()
    for group, each in desired.items():
        writes.extend(_of_group(endpoints, by_group.pop(group, []), each, group[1]))
    for left in by_group.values():
        writes.delete += left
    recycle(writes, lambda _: True)
    if is_terminating(endpoints):
        writes.create.clear()
    return writes, warnings


def _desired(endpoints: core.Endpoints) -> tuple[dict[_Group, _Desired], list[PlannedEvent]]:
    found: dict[_Group, _Desired] = {}
    invalid = skipped = 0
    for subset in repack(endpoints.subsets):
        ports = [endpoint_port(discovery.EndpointPort, port, port.port) for port in subset.ports]
        rows = [
            *((row, True) for row in subset.addresses),
            *((row, False) for row in subset.notReadyAddresses),
        ]
        mirrored = 0
        for row, ready in rows:
            if mirrored == ENDPOINTS_MAX:
                break
            family = _family(row.ip)
            if family is None:
                invalid += 1
                continue
            group = found.setdefault((ports_key(ports), family), _Desired(ports, {}))
            endpoint = _endpoint(row, ready=ready)
            group.endpoints[endpoint_key(endpoint)] = endpoint
            mirrored += 1
        skipped += len(rows) - mirrored
    return found, _warnings(invalid, skipped)


def _warnings(invalid: int, skipped: int) -> list[PlannedEvent]:
    found = []
    if invalid:
        note = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
        found.append(PlannedEvent("InvalidIPAddress", note, "Warning"))
    if skipped > invalid:
        note = (
            f"A max of {ENDPOINTS_MAX} addresses can be mirrored to EndpointSlices per Endpoints subset."
            f" {skipped} addresses were skipped"
        )
        found.append(PlannedEvent("TooManyAddressesToMirror", note, "Warning"))
    return found


def _of_group(
    endpoints: core.Endpoints,
    existing: Sequence[discovery.EndpointSlice],
    desired: _Desired,
    address_type: AddressType,
) -> Writes:
    """Return the writes for one list of ports and family: they have one slice."""
    writes = Writes(delete=list(existing[1:]))
    labels = dict(endpoints.metadata.labels) | {
        SERVICE_LABEL: endpoints.metadata.name,
        MANAGED_BY_LABEL: CONTROLLER,
    }
    annotations = {
        name: value for name, value in endpoints.metadata.annotations.items() if name not in _NOT_MIRRORED
    }
    if existing and _is_right(existing[0], desired, labels, annotations):
        return writes
    new = discovery.EndpointSlice(
        addressType=address_type, ports=desired.ports, endpoints=desired.endpoints.values()
    )
    metadata = new.metadata
    metadata.namespace = endpoints.metadata.namespace
    metadata.labels.update(labels)
    metadata.annotations.update(annotations)
    metadata.ownerReferences.add().CopyFrom(owner_reference(endpoints))
    if existing:
        metadata.name = existing[0].metadata.name
        metadata.resourceVersion = existing[0].metadata.resourceVersion
        writes.update.append(new)
    else:
        metadata.generateName = name_prefix(endpoints.metadata.name)
        writes.create.append(new)
    return writes


def _is_right(
    found: discovery.EndpointSlice, desired: _Desired, labels: dict[str, str], annotations: dict[str, str]
) -> bool:
    have = {endpoint_key(endpoint): endpoint for endpoint in found.endpoints}
    return (
        dict(found.metadata.labels) == labels
        and dict(found.metadata.annotations) == annotations
        and have.keys() == desired.endpoints.keys()
        and all(same_endpoint(have[key], desired.endpoints[key]) for key in have)
    )


def _family(ip: str) -> AddressType | None:
    try:
        return "IPv6" if ip_address(ip).version == 6 else "IPv4"
    except ValueError:
        return None


def _endpoint(row: core.EndpointAddress, *, ready: bool) -> discovery.Endpoint:
    made = discovery.Endpoint(addresses=[row.ip])
    made.conditions.ready = ready
    if row.HasField("targetRef"):
        made.targetRef.CopyFrom(row.targetRef)
    if row.HasField("nodeName"):
        made.nodeName = row.nodeName
    if row.hostname:
        made.hostname = row.hostname
    return made
