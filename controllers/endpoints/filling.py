"""How endpoints are spread over slices: as few writes as possible, and no slice over its limit. Pure.

Source: Kubernetes 1.36, k8s.io/endpointslice, reconcileByPortMapping and its helpers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, discovery

ENDPOINTS_MAX: Final = 100
"""Endpoints in one slice, upstream's --max-endpoints-per-slice."""

EndpointKey = tuple[tuple[str, ...], str, str, str]
PortsKey = tuple[tuple[str | int | None, ...], ...]
Labels = dict[str, str]


@dataclass(slots=True)
class Writes:
    """Slices to create (they have no name yet), to update and to delete."""

    create: list[discovery.EndpointSlice] = field(default_factory=list)
    update: list[discovery.EndpointSlice] = field(default_factory=list)
    delete: list[discovery.EndpointSlice] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.update or self.delete)

    def extend(self, other: Writes) -> None:
        self.create += other.create
        self.update += other.update
        self.delete += other.delete


def endpoint_key(endpoint: discovery.Endpoint) -> EndpointKey:
    """Return the identity of an endpoint: addresses, hostname and target."""
    target = endpoint.targetRef
    return tuple(sorted(endpoint.addresses)), endpoint.hostname, target.namespace, target.name


def same_endpoint(one: discovery.Endpoint, other: discovery.Endpoint) -> bool:
    """Report whether two endpoints of the same key are equal but for their hints."""
    return _details(one) == _details(other)


def ports_key(ports: Iterable[discovery.EndpointPort]) -> PortsKey:
    """Return the identity of a list of ports, in whichever order."""
    rows = [
        (
            port.name,
            port.protocol,
            port.port if port.HasField("port") else None,
            port.appProtocol if port.HasField("appProtocol") else None,
        )
        for port in ports
    ]
    return tuple(sorted(rows, key=repr))


def fill(
    existing: Iterable[discovery.EndpointSlice],
    desired: Iterable[discovery.Endpoint],
    labels: Callable[[discovery.EndpointSlice], Labels | None],
    new_slice: Callable[[], discovery.EndpointSlice],
) -> Writes:
    """Return the writes that bring the slices of one list of ports to the desired endpoints.

    `existing` are not changed. `labels` returns the labels of a slice whose own are wrong, else None.
    Endpoints stay where they are; new ones go into slices that are written anyway, then into the one slice
    that they fill best, then into new slices.
    """
    left = {endpoint_key(endpoint): endpoint for endpoint in desired}
    writes = Writes()
    unchanged: list[discovery.EndpointSlice] = []
    written: list[discovery.EndpointSlice] = []
    for found in existing:
        kept, changed = _kept(found, left)
        new_labels = labels(found)
        if not kept and found.endpoints:
            writes.delete.append(found)
        elif changed or new_labels is not None:
            written.append(_with(found, kept, new_labels))
        else:
            unchanged.append(found)
    for each in sorted(written, key=lambda found: -len(found.endpoints)):
        _put(each, left)
    while left:
        fitting = _best_fit(unchanged, len(left)) if len(left) < ENDPOINTS_MAX else None
        if fitting is None:
            filled = new_slice()
            writes.create.append(filled)
        else:
            unchanged.remove(fitting)
            filled = _with(fitting, list(fitting.endpoints), None)
            written.append(filled)
        _put(filled, left)
    writes.update = written
    return writes


def _details(endpoint: discovery.Endpoint) -> tuple[object, ...]:
    conditions = endpoint.conditions
    target: core.ObjectReference = endpoint.targetRef
    return (
        endpoint.nodeName,
        endpoint.zone,
        *(
            getattr(conditions, name) if conditions.HasField(name) else None
            for name in ("ready", "serving", "terminating")
        ),
        (target.kind, target.namespace, target.name, target.uid, target.apiVersion, target.fieldPath),
    )


def _kept(
    found: discovery.EndpointSlice, left: dict[EndpointKey, discovery.Endpoint]
) -> tuple[list[discovery.Endpoint], bool]:
    """Take the slice's endpoints out of `left`; return the desired ones, and whether they differ."""
    kept, changed = [], False
    for endpoint in found.endpoints:
        wanted = left.pop(endpoint_key(endpoint), None)
        if wanted is not None:
            kept.append(wanted)
        changed = changed or wanted is None or not same_endpoint(wanted, endpoint)
    return kept, changed


def _with(
    found: discovery.EndpointSlice, endpoints: list[discovery.Endpoint], labels: Labels | None
) -> discovery.EndpointSlice:
    new = copy_of(found)
    del new.endpoints[:]
    new.endpoints.extend(endpoints)
    if labels is not None:
        new.metadata.labels.clear()
        new.metadata.labels.update(labels)
    return new


def _put(found: discovery.EndpointSlice, left: dict[EndpointKey, discovery.Endpoint]) -> None:
    """Move endpoints from `left` into a slice until it is full."""
    for key in list(left)[: max(0, ENDPOINTS_MAX - len(found.endpoints))]:
        found.endpoints.append(left.pop(key))


def _best_fit(slices: Iterable[discovery.EndpointSlice], number: int) -> discovery.EndpointSlice | None:
    """Return the slice that so many endpoints fill best, None where no slice has room for all."""
    fitting = [found for found in slices if len(found.endpoints) + number <= ENDPOINTS_MAX]
    return max(fitting, key=lambda found: len(found.endpoints), default=None)
