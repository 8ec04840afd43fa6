"""The addresses of the ready ServiceCIDRs, the order of allocation, and the IPAddress of one. Pure.

Source: kube-apiserver 1.36, pkg/registry/core/service/ipallocator; KEP-3070 (the lower part of a range is
allocated last, so that clients can request addresses there), KEP-1880 (ServiceCIDR and IPAddress objects).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nominee.machinery.api.pb import core, networking

MANAGED_BY = "ipallocator.k8s.io"
FAMILY_LABEL, MANAGED_BY_LABEL = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
READY = "Ready"
_STATIC_MIN, _STATIC_MAX, _STATIC_SHARE = 16, 256, 16


def static_part(size: int, *, least: int, most: int, share: int) -> int:
    """Return the number of values at the start of a range that are allocated last."""
    return 0 if size <= least else min(max(size // share, least), most)


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A range of IPv4 addresses; its first (the network) and last (broadcast) are never allocated."""

    network: ipaddress.IPv4Network

    def __contains__(self, address: ipaddress.IPv4Address) -> bool:
        return address in self.network and address not in (
            self.network.network_address,
            self.network.broadcast_address,
        )

    def candidates(self, rng: random.Random) -> Iterator[str]:
        """Yield every address once: from a random start in the upper part, then in the lower part."""
        first, last = int(self.network.network_address) + 1, int(self.network.broadcast_address) - 1
        below = static_part(
            self.network.num_addresses, least=_STATIC_MIN, most=_STATIC_MAX, share=_STATIC_SHARE
        )
        for begin, end in ((first + below, last), (first, first + below - 1)):
            count = end - begin + 1
            if count <= 0:
                continue
            start = rng.randrange(count)
            for step in range(count):
                yield str(ipaddress.IPv4Address(begin + (start + step) % count))


def ready_ranges(found: Iterable[networking.ServiceCIDR]) -> list[AddressRange]:
    """Return the IPv4 ranges of ready ServiceCIDRs, each once, in the order of the objects."""
    ranges: dict[ipaddress.IPv4Network, None] = {}
    for each in found:
        if each.metadata.HasField("deletionTimestamp") or not _is_ready(each):
            continue
        for text in each.spec.cidrs:
            if ":" not in text:
                ranges.setdefault(ipaddress.IPv4Network(text, strict=False))
    return [AddressRange(each) for each in ranges]


def _is_ready(found: networking.ServiceCIDR) -> bool:
    """Report whether a ServiceCIDR is ready, also without the condition: its controller may not run."""
    status = next((each.status for each in found.status.conditions if each.type == READY), "True")
    return status == "True"


def is_addressed(spec: core.ServiceSpec) -> bool:
    """Report whether a Service has or gets a cluster IP."""
    return spec.type != "ExternalName" and spec.clusterIP != "None"


def address_object(address: str, service: core.Service) -> networking.IPAddress:
    """Return the IPAddress that reserves an address for a Service."""
    made = networking.IPAddress()
    made.metadata.name = address
    made.metadata.labels.update({FAMILY_LABEL: family(address), MANAGED_BY_LABEL: MANAGED_BY})
    made.spec.parentRef.resource = "services"
    made.spec.parentRef.namespace = service.metadata.namespace
    made.spec.parentRef.name = service.metadata.name
    return made


def family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def belongs_to(found: networking.IPAddress, service: core.Service) -> bool:
    """Report whether an IPAddress refers to a Service."""
    parent, owner = found.spec.parentRef, service.metadata
    return refers_to_service(found) and (parent.namespace, parent.name) == (owner.namespace, owner.name)


def refers_to_service(found: networking.IPAddress) -> bool:
    return (found.spec.parentRef.group, found.spec.parentRef.resource) == ("", "services")


def has_labels(found: networking.IPAddress) -> bool:
    """Report whether an IPAddress has the allocator's labels."""
    labels = found.metadata.labels
    return labels.get(MANAGED_BY_LABEL) == MANAGED_BY and labels.get(FAMILY_LABEL) == family(
        found.metadata.name
    )
