"""Defaults of a Service's IP families and policy (kube-apiserver 1.36, initIPFamilyFields). Pure.

The cluster has one range of addresses, of IPv4.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.core.services import addresses as service_addresses
from nominee.apiserver.kinds.core.services.addresses import NONE, family_of
from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

FAMILY = "IPv4"


def complete(spec: core.ServiceSpec, old: core.ServiceSpec | None) -> list[Cause]:
    """Fill in policy and families in place; return the errors of the values that the client gave."""
    if spec.type == "ExternalName" or (old is not None and _prefers_as_before(spec, old)):
        return []
    selectorless = spec.clusterIP == NONE and not spec.selector
    if not spec.HasField("ipFamilyPolicy"):
        if old is not None and old.HasField("ipFamilyPolicy"):
            spec.ipFamilyPolicy = old.ipFamilyPolicy
        else:
            spec.ipFamilyPolicy = "RequireDualStack" if selectorless else "SingleStack"
    errors = service_addresses.check_families(spec)
    if errors:
        return errors
    if old is not None:
        errors += _released(spec, old)
    errors += _inferred(spec)
    if errors:
        return errors
    if selectorless:
        if not spec.ipFamilies:
            spec.ipFamilies.append(FAMILY)
        if len(spec.ipFamilies) < 2 and spec.ipFamilyPolicy != "SingleStack":
            spec.ipFamilies.append("IPv6" if spec.ipFamilies[0] == "IPv4" else "IPv4")
        return []
    if spec.ipFamilyPolicy == "RequireDualStack":
        problem = "this cluster is not configured for dual-stack services"
        errors.append(field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, problem))
    errors += [
        field.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec.ipFamilies)
        if family != FAMILY
    ]
    if not errors and not spec.ipFamilies:
        spec.ipFamilies.append(FAMILY)
    return errors


def _prefers_as_before(spec: core.ServiceSpec, old: core.ServiceSpec) -> bool:
    """A PreferDualStack service follows no change of the cluster by itself."""
    return (
        spec.ipFamilyPolicy == old.ipFamilyPolicy == "PreferDualStack"
        and list(spec.clusterIPs) == list(old.clusterIPs)
        and list(spec.ipFamilies) == list(old.ipFamilies)
        and bool(spec.clusterIPs)
    )


def _released(spec: core.ServiceSpec, old: core.ServiceSpec) -> Iterator[Cause]:
    if spec.ipFamilyPolicy == "SingleStack":
        if list(spec.clusterIPs) == list(old.clusterIPs):
            del spec.clusterIPs[1:]
        if list(spec.ipFamilies) == list(old.ipFamilies):
            del spec.ipFamilies[1:]
        return
    for name, second in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        if 0 < len(getattr(spec, name)) < len(getattr(old, name)):
            problem = f"must be 'SingleStack' to release the secondary {second}"
            yield field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, problem)


def _inferred(spec: core.ServiceSpec) -> Iterator[Cause]:
    if spec.ipFamilyPolicy == "SingleStack":
        for name, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(getattr(spec, name)) == 2:
                problem = (
                    f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                )
                yield field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, problem)
    for index, address in enumerate(spec.clusterIPs):
        if address == NONE or index < len(spec.ipFamilies):
            continue
        family = family_of(address)
        if family != FAMILY:
            problem = f"{family} is not configured on this cluster"
            yield field.invalid(f"spec.clusterIPs[{index}]", list(spec.clusterIPs), problem)
        else:
            spec.ipFamilies.append(family)
