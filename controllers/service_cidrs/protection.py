"""Whether a ServiceCIDR may be deleted, and its condition Ready. Pure.

Every address that the API server has allocated must stay within a range.

Source: kube-controller-manager 1.36, controller/servicecidrs (canDeleteCIDR), pkg/api/servicecidr.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from nominee.machinery.api.pb import networking
from nominee.machinery.runtime.clock import rfc3339

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
READY, TERMINATING = "Ready", "Terminating"
READY_MESSAGE: Final = "Kubernetes Service CIDR is ready"
HELD_MESSAGE: Final = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)
GRACE_SECONDS: Final = 10.0
"""How long a range is kept, so that every API server sees its deletion before its last address is given."""
MANAGED_BY_LABEL, MANAGED_BY = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(found: networking.ServiceCIDR) -> list[Network]:
    return [ipaddress.ip_network(text, strict=False) for text in found.spec.cidrs]


def may_be_deleted(
    deleted: networking.ServiceCIDR,
    others: Sequence[networking.ServiceCIDR],
    addresses: Iterable[networking.IPAddress],
) -> bool:
    """Report whether the other ranges contain all of this one, or each of its addresses that is in use."""
    kept = [network for other in others for network in networks(other)]
    if all(any(_contains(outer, own) for outer in kept) for own in networks(deleted)):
        return True
    return not any(
        _is_in(address, networks(deleted)) and not _is_in(address, kept)
        for address in (each.metadata.name for each in addresses if is_allocated(each))
    )


def is_allocated(found: networking.IPAddress) -> bool:
    """Report whether an address was allocated for a Service, and not by another client."""
    return found.metadata.labels.get(MANAGED_BY_LABEL) == MANAGED_BY


def overlaps(one: networking.ServiceCIDR, other: networking.ServiceCIDR) -> bool:
    return any(
        left.version == right.version and left.overlaps(right)
        for left in networks(one)
        for right in networks(other)
    )


def covers(found: networking.ServiceCIDR, address: str) -> bool:
    return _is_in(address, networks(found))


def ready_patch(service_cidr: networking.ServiceCIDR, now: float) -> dict[str, object] | None:
    """Return the patch of the status that reports a range as ready, None where it does."""
    if _has_condition(service_cidr, "True"):
        return None
    return _status_patch("True", "", READY_MESSAGE, now)


def held_patch(service_cidr: networking.ServiceCIDR, now: float) -> dict[str, object] | None:
    """Return the patch of the status that reports a deleted range as still in use, None where it does."""
    if _has_condition(service_cidr, "False", TERMINATING):
        return None
    return _status_patch("False", TERMINATING, HELD_MESSAGE, now)


def _has_condition(service_cidr: networking.ServiceCIDR, status: str, reason: str | None = None) -> bool:
    return any(
        each.type == READY and each.status == status and reason in (None, each.reason)
        for each in service_cidr.status.conditions
    )


def _status_patch(status: str, reason: str, message: str, now: float) -> dict[str, object]:
    condition = {
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
    return {"status": {"conditions": [condition]}}


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, ipaddress.IPv4Network):
        return isinstance(inner, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, ipaddress.IPv6Network) and inner.subnet_of(outer)


def _is_in(address: str, found: Iterable[Network]) -> bool:
    own = ipaddress.ip_address(address)
    return any(own in network for network in found)
