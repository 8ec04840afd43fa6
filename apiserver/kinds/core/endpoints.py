"""Endpoints (kube-apiserver 1.36, pkg/apis/core/validation ValidateEndpoints; pkg/api/endpoints)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nominee.apiserver.kinds.rules import Deprecation, KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.cells import NONE, few
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version

_PROTOCOLS = ("SCTP", "TCP", "UDP")


class EndpointsStrategy(Strategy[core.Endpoints]):
    """The main resource."""

    def validate(self, new: core.Endpoints, env: Environment) -> list[Cause]:
        return [*self.validate_metadata(new), *_subsets(new.subsets)]

    def validate_update(self, new: core.Endpoints, old: core.Endpoints, env: Environment) -> list[Cause]:
        # Subsets that were stored by a version with other rules may stay as they are.
        changed = [] if new.subsets == old.subsets else list(_subsets(new.subsets))
        return metadata.object_meta_update(new.metadata, old.metadata) + self.validate_metadata(new) + changed

    def warnings(self, new: core.Endpoints, old: core.Endpoints | None) -> Sequence[str]:
        return [
            warning
            for index, subset in enumerate(new.subsets)
            for path, address in _addresses(f"subsets[{index}]", subset)
            for warning in addresses.warnings(f"{path}.ip", address.ip)
        ]


def _addresses(path: str, subset: core.EndpointSubset) -> Iterator[tuple[str, core.EndpointAddress]]:
    for number, address in enumerate(subset.addresses):
        yield f"{path}.addresses[{number}]", address
    for number, address in enumerate(subset.notReadyAddresses):
        yield f"{path}.notReadyAddresses[{number}]", address


def _subsets(subsets: Iterable[core.EndpointSubset]) -> Iterator[Cause]:
    """validateEndpointSubsets."""
    for index, subset in enumerate(subsets):
        path = f"subsets[{index}]"
        if not subset.addresses and not subset.notReadyAddresses:
            yield field.required(path, "must specify `addresses` or `notReadyAddresses`")
        for at, address in _addresses(path, subset):
            yield from _address(at, address)
        for number, port in enumerate(subset.ports):
            yield from _port(f"{path}.ports[{number}]", port, named=len(subset.ports) > 1)


def _address(path: str, address: core.EndpointAddress) -> list[Cause]:
    errors = addresses.ip_address(f"{path}.ip", address.ip)
    if address.hostname:
        errors += field.check(f"{path}.hostname", address.hostname, names.dns_label)
    if address.HasField("nodeName"):
        errors += field.check(f"{path}.nodeName", address.nodeName, names.dns_subdomain)
    return errors + addresses.not_special(f"{path}.ip", address.ip)


def _port(path: str, port: core.EndpointPort, *, named: bool) -> Iterator[Cause]:
    if named and not port.name:
        yield field.required(f"{path}.name")
    elif port.name:
        yield from field.check(f"{path}.name", port.name, names.dns_label)
    yield from addresses.port(f"{path}.port", port.port)
    yield from field.choice(f"{path}.protocol", port.protocol, _PROTOCOLS)
    if port.HasField("appProtocol"):
        yield from field.check(f"{path}.appProtocol", port.appProtocol, names.qualified_name)


def _row(obj: core.Endpoints, now: float) -> Cells:
    shown = []
    for subset in obj.subsets:
        for port in [f":{each.port}" for each in subset.ports] or [""]:
            shown += [
                f"[{each.ip}]{port}" if port and ":" in each.ip else f"{each.ip}{port}"
                for each in subset.addresses
            ]
    text = few(shown) if obj.subsets else NONE
    return [text]


RULES = KindRules(
    kind=kinds.ENDPOINTS,
    strategy=EndpointsStrategy(kinds.ENDPOINTS),
    columns=Columns(_row, NAME, Column("Endpoints", "endpoints-v1#subsets"), AGE),
    created_by_update=True,
    deprecation=Deprecation(Version(1, 33), kinds.ENDPOINT_SLICE),
)
