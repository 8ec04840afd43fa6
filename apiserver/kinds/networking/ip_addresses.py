"""IPAddresses: their name is the address (kube-apiserver 1.36, ValidateIPAddress)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import addresses, field, metadata, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.typed_references import segment
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import networking


class IPAddressStrategy(Strategy[networking.IPAddress]):
    """The main resource; the name of the object is the address."""

    def name_rule(self, name: str) -> names.Problems:
        return addresses.canonical_problems(name)

    def validate(self, new: networking.IPAddress, env: Environment) -> list[Cause]:
        return [*self.validate_metadata(new), *_parent(new.spec)]

    def validate_update(
        self, new: networking.IPAddress, old: networking.IPAddress, env: Environment
    ) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        if new.spec.HasField("parentRef") == old.spec.HasField("parentRef") and (
            new.spec.parentRef == old.spec.parentRef
        ):
            return errors
        value = dump(new.spec.parentRef) if new.spec.HasField("parentRef") else None
        return [*errors, field.invalid("spec.parentRef", value, field.IMMUTABLE)]


def _parent(spec: networking.IPAddressSpec) -> Iterator[Cause]:
    """validateIPAddressParentReference; the group of Services is "", so it may be missing."""
    path = "spec.parentRef"
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
    strategy=IPAddressStrategy(kinds.IP_ADDRESS),
    columns=Columns(_row, NAME, Column("ParentRef", "ipaddressspec-networking-v1#parentRef"), AGE),
)
