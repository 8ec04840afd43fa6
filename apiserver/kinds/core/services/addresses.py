"""A Service's clusterIPs, ipFamilies and ipFamilyPolicy (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.validation import field
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

NONE = "None"
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_UNCHANGEABLE = "may not change once set"


def is_headless(spec: core.ServiceSpec) -> bool:
    return list(spec.clusterIPs) == [NONE]


def family_of(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def check_families(spec: core.ServiceSpec) -> list[Cause]:
    """Check that addresses, families and policy fit together; also used before addresses are allocated."""
    if spec.type == "ExternalName":
        return []
    path, errors = "spec.clusterIPs", []
    listed = list(spec.clusterIPs)
    if spec.clusterIP:
        if not listed:
            errors.append(field.required(path))
        elif listed[0] != spec.clusterIP:
            errors.append(field.invalid(path, listed, "first value must match `clusterIP`"))
    elif listed:
        errors.append(field.invalid(path, listed, "must be empty when `clusterIP` is not specified"))
    errors += _families(spec)
    bad = list(_each(listed))
    errors += bad
    if len(listed) > 2:
        errors.append(field.invalid(path, listed, "may only hold up to 2 values"))
    if bad:
        return errors
    if len(listed) > 1 and {family_of(each) for each in listed} != set(_FAMILIES):
        errors.append(field.invalid(path, listed, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for index, (address, family) in enumerate(zip(listed, spec.ipFamilies, strict=False)):
            if family in _FAMILIES and family_of(address) != family:
                problem = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                errors.append(field.invalid(f"{path}[{index}]", address, problem))
    return errors


def _families(spec: core.ServiceSpec) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, family in enumerate(spec.ipFamilies):
        at = f"spec.ipFamilies[{index}]"
        yield from field.one_of(at, family, _FAMILIES)
        yield from field.unique(at, family, seen)
    if spec.HasField("ipFamilyPolicy") and spec.ipFamilyPolicy not in _POLICIES:
        yield field.not_supported("spec.ipFamilyPolicy", spec.ipFamilyPolicy, _POLICIES)


def _each(listed: list[str]) -> Iterator[Cause]:
    for index, address in enumerate(listed):
        if index == 0 and address == NONE:
            if len(listed) > 1:
                yield field.invalid("spec.clusterIPs", listed, "'None' must be the first and only value")
            continue
        yield from addresses.ip_address(f"spec.clusterIPs[{index}]", address)


def changes(new: core.ServiceSpec, old: core.ServiceSpec) -> Iterator[Cause]:
    """Check changed addresses and families: a second one may come and go, the first one stays."""
    if "ExternalName" in (new.type, old.type):
        return
    if is_headless(new) and is_headless(old):
        return
    yield from _kept("clusterIPs", new, old, "the secondary clusterIP", "primary clusterIP can not be unset")
    if is_headless(new) == is_headless(old):
        yield from _kept(
            "ipFamilies", new, old, "the secondary ipFamily", "primary ipFamily can not be unset"
        )


def _kept(name: str, new: core.ServiceSpec, old: core.ServiceSpec, second: str, unset: str) -> list[Cause]:
    after, before = list(getattr(new, name)), list(getattr(old, name))
    if len(before) == len(after):
        return [
            field.invalid(f"spec.{name}[{index if name == 'clusterIPs' else 0}]", after, _UNCHANGEABLE)
            for index, value in enumerate(before)
            if value != after[index]
        ]
    errors: list[Cause] = []
    if len(before) > len(after) and not new.clusterIPs:
        errors.append(field.invalid(f"spec.{name}[0]", after, unset))
    if before and after and before[0] != after[0]:
        shown = after if name == "clusterIPs" else list(new.clusterIPs)
        errors.append(field.invalid(f"spec.{name}[0]", shown, _UNCHANGEABLE))
    if len(before) > len(after) == 1 and new.ipFamilyPolicy != "SingleStack":
        policy = new.ipFamilyPolicy if new.HasField("ipFamilyPolicy") else None
        problem = f"must be set to 'SingleStack' when releasing {second}"
        errors.append(field.invalid("spec.ipFamilyPolicy", policy, problem))
    return errors
