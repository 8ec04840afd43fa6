"""EndpointSlices (kube-apiserver 1.36, pkg/apis/discovery/validation and pkg/registry/discovery)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.printing.cells import UNSET, few
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import discovery

_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ENDPOINTS_MAX = 1000
_ADDRESSES_MAX = 100
_PORTS_MAX = 20000
_HINTS_MAX = 8
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_OUR_SLICES = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(SimpleStrategy[discovery.EndpointSlice]):
    """Without a spec: a change of endpoints, ports or labels increases the generation."""

    def prepare_for_create(self, new: discovery.EndpointSlice, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.metadata.generation = 1

    def prepare_for_update(
        self, new: discovery.EndpointSlice, old: discovery.EndpointSlice, env: Environment
    ) -> None:
        super().prepare_for_update(new, old, env)
        same = all(getattr(new, name) == getattr(old, name) for name in ("endpoints", "ports"))
        if not same or new.metadata.labels != old.metadata.labels:
            new.metadata.generation = old.metadata.generation + 1


def _validate(obj: discovery.EndpointSlice) -> Iterator[Cause]:
    yield from field.choice("addressType", obj.addressType, _TYPES)
    if len(obj.endpoints) > _ENDPOINTS_MAX:
        yield field.too_many("endpoints", len(obj.endpoints), _ENDPOINTS_MAX)
    else:
        for index, endpoint in enumerate(obj.endpoints):
            yield from _endpoint(f"endpoints[{index}]", endpoint, obj.addressType)
    yield from _ports(obj)


def _endpoint(path: str, endpoint: discovery.Endpoint, kind: str) -> Iterator[Cause]:
    at, found = f"{path}.addresses", endpoint.addresses
    if not found:
        yield field.required(at, "must contain at least 1 address")
    elif len(found) > _ADDRESSES_MAX:
        yield field.too_many(at, len(found), _ADDRESSES_MAX)
    for index, address in enumerate(found):
        yield from _address(f"{at}[{index}]", address, kind)
    if endpoint.HasField("nodeName"):
        yield from _each(f"{path}.nodeName", endpoint.nodeName, names.dns_subdomain(endpoint.nodeName))
    for key, value in sorted(endpoint.deprecatedTopology.items()):
        where = f"{path}.deprecatedTopology"
        yield from _each(where, key, names.qualified_name(key))
        yield from _each(where, value, names.label_value(value))
    if endpoint.HasField("hostname"):
        yield from _each(f"{path}.hostname", endpoint.hostname, names.dns_label(endpoint.hostname))
    yield from _hints(f"{path}.hints", endpoint.hints)


def _hints(path: str, hints: discovery.EndpointHints) -> Iterator[Cause]:
    """Upstream: validateHints, which looks no further where there are too many."""
    for name, rule in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        found = getattr(hints, name)
        if len(found) > _HINTS_MAX:
            yield field.too_many(f"{path}.{name}", len(found), _HINTS_MAX)
            return
        for index, hint in enumerate(found):
            yield from _each(f"{path}.{name}[{index}].name", hint.name, rule(hint.name))


def _each(path: str, value: str, problems: names.Problems) -> list[Cause]:
    return field.problems(path, value, problems)


def _address(path: str, address: str, kind: str) -> list[Cause]:
    parsed = addresses.parse(address)
    if kind in ("IPv4", "IPv6"):
        errors: list[Cause] = []
        if parsed is None or f"IPv{parsed.version}" != kind:
            errors.append(field.invalid(path, address, f"must be a valid {kind} address"))
        return errors + addresses.not_special(path, address)
    if kind == "FQDN":
        name = address.removesuffix(".")
        errors = _each(path, address, names.dns_subdomain(name))
        if not errors and "." not in name:
            problem = "should be a domain with at least two segments separated by dots"
            errors.append(field.invalid(path, address, problem))
        return errors
    return []


def _ports(obj: discovery.EndpointSlice) -> Iterator[Cause]:
    if len(obj.ports) > _PORTS_MAX:
        yield field.too_many("ports", len(obj.ports), _PORTS_MAX)
        return
    seen: set[str] = set()
    for index, port in enumerate(obj.ports):
        path = f"ports[{index}]"
        if port.name:
            yield from _each(f"{path}.name", port.name, names.dns_label(port.name))
        yield from field.unique(f"{path}.name", port.name, seen)
        if not port.HasField("protocol"):
            yield field.required(f"{path}.protocol")
        elif port.protocol not in _PROTOCOLS:
            yield field.not_supported(f"{path}.protocol", port.protocol, _PROTOCOLS)
        if port.HasField("appProtocol"):
            yield from _each(f"{path}.appProtocol", port.appProtocol, names.qualified_name(port.appProtocol))


def _validate_change(new: discovery.EndpointSlice, old: discovery.EndpointSlice) -> list[Cause]:
    return field.immutable("addressType", new.addressType, old.addressType)


def _warnings(endpoints: discovery.EndpointSlice, old: discovery.EndpointSlice | None) -> Iterator[str]:
    """Those of our own controllers are not looked at, as upstream."""
    if old is None and endpoints.addressType == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    if endpoints.metadata.labels.get(_MANAGED_BY) in _OUR_SLICES:
        return
    for index, endpoint in enumerate(endpoints.endpoints):
        for number, address in enumerate(endpoint.addresses):
            yield from addresses.warnings(f"endpoints[{index}].addresses[{number}]", address)


def _some(values: Sequence[str]) -> str:
    """The first of a list, and how many more there are."""
    return few(values) or UNSET


def _row(obj: discovery.EndpointSlice, now: float) -> Cells:
    ports = [
        str(port.port) if port.HasField("port") else port.name if port.HasField("name") else "*"
        for port in obj.ports
    ]
    addresses = [address for endpoint in obj.endpoints for address in endpoint.addresses]
    return [obj.addressType, _some(ports), _some(addresses)]


RULES = KindRules(
    kind=kinds.ENDPOINT_SLICE,
    strategy=EndpointSliceStrategy(kinds.ENDPOINT_SLICE, _validate, _validate_change, warnings=_warnings),
    columns=Columns(
        _row,
        NAME,
        Column("AddressType", "endpointslice-discovery-v1#addressType"),
        Column("Ports", "endpointslice-discovery-v1#ports"),
        Column("Endpoints", "endpointslice-discovery-v1#endpoints"),
        AGE,
    ),
)
