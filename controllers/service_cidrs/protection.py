"""Whether a ServiceCIDR may go: every address that the API server gave must be left with a range. Pure.

Source: kube-controller-manager 1.36, controller/servicecidrs (canDeleteCIDR), pkg/api/servicecidr.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from machinery.api.pb import networking

MANAGED_BY_LABEL, MANAGED_BY = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(found: networking.ServiceCIDR) -> list[Network]:
    return [ipaddress.ip_network(text, strict=False) for text in found.spec.cidrs]


def may_be_deleted(
    leaving: networking.ServiceCIDR,
    others: Sequence[networking.ServiceCIDR],
    given: Iterable[networking.IPAddress],
) -> bool:
    """Whether the other ranges contain all of this one, or at least each of its addresses that is in use."""
    kept = [network for other in others for network in networks(other)]
    if all(any(_contains(outer, own) for outer in kept) for own in networks(leaving)):
        return True
    return not any(
        _is_in(address, networks(leaving)) and not _is_in(address, kept)
        for address in (each.metadata.name for each in given if is_given(each))
    )


def is_given(found: networking.IPAddress) -> bool:
    """Whether an address is a Service's, and not another client's."""
    return found.metadata.labels.get(MANAGED_BY_LABEL) == MANAGED_BY


def overlaps(one: networking.ServiceCIDR, other: networking.ServiceCIDR) -> bool:
    return any(
        left.version == right.version and left.overlaps(right)
        for left in networks(one)
        for right in networks(other)
    )


def covers(found: networking.ServiceCIDR, address: str) -> bool:
    return _is_in(address, networks(found))


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, ipaddress.IPv4Network):
        return isinstance(inner, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, ipaddress.IPv6Network) and inner.subnet_of(outer)


def _is_in(address: str, found: Iterable[Network]) -> bool:
    own = ipaddress.ip_address(address)
    return any(own in network for network in found)
