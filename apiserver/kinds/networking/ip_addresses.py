"""IPAddresses: their name is the address (kube-apiserver 1.36, ValidateIPAddress)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.objects.typed_references import segment
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import networking


def _validate_change(new: networking.IPAddress, old: networking.IPAddress) -> list[Cause]:
    has, had = new.spec.HasField("parentRef"), old.spec.HasField("parentRef")
    if has == had and new.spec.parentRef == old.spec.parentRef:
        return []
    return [field.invalid("spec.parentRef", dump(new.spec.parentRef) if has else None, field.IMMUTABLE)]


def _validate(obj: networking.IPAddress) -> Iterator[Cause]:
    """validateIPAddressParentReference; the group of Services is "", so it may be missing."""
    path, spec = "spec.parentRef", obj.spec
    if not spec.HasField("parentRef"):
        yield field.required(path)
        return
    parent = spec.parentRef
    if parent.group:
        problems = names.dns_subdomain(parent.group)
        yield from field.problems(f"{path}.group", parent.group, problems)
    yield from segment(f"{path}.resource", parent.resource)
    yield from segment(f"{path}.name", parent.name)
    if parent.namespace:
        yield from segment(f"{path}.namespace", parent.namespace)


def _row(obj: networking.IPAddress, now: float) -> Cells:
    parent = obj.spec.parentRef
    resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
    shown = "/".join(part for part in (resource, parent.namespace, parent.name) if part) or NONE
    return [shown]


RULES = KindRules(
    kind=kinds.IP_ADDRESS,
    strategy=SimpleStrategy(
        kinds.IP_ADDRESS,
        _validate,
        _validate_change,
        name_rule=addresses.canonical_problems,
        updates=UpdateCheck.NOTHING,
    ),
    columns=Columns(_row, NAME, Column("ParentRef", "ipaddressspec-networking-v1#parentRef"), AGE),
)
