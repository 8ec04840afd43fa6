"""IPAddresses: their name is the address (kube-apiserver 1.36, ValidateIPAddress)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.kinds.typed_references import segment
from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import addresses, field, metadata, names
from apiserver.validation.go_dump import dump
from machinery.api import kinds
from machinery.api.errors import Cause
from machinery.api.pb import networking


class IPAddressStrategy(Strategy):
    def name_rule(self, name: str) -> names.Problems:
        return addresses.canonical_problems(name)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + _parent(new.spec)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        if new.spec.HasField("parentRef") == old.spec.HasField("parentRef") and (
            new.spec.parentRef == old.spec.parentRef
        ):
            return errors
        value = dump(new.spec.parentRef) if new.spec.HasField("parentRef") else None
        return [*errors, field.invalid("spec.parentRef", value, field.IMMUTABLE)]


def _parent(spec: networking.IPAddressSpec) -> list[Cause]:
    """validateIPAddressParentReference; the group of Services is "", so it may be missing."""
    path = "spec.parentRef"
    if not spec.HasField("parentRef"):
        return [field.required(path)]
    parent = spec.parentRef
    errors: list[Cause] = []
    if parent.group:
        problems = names.dns_subdomain(parent.group)
        errors += [field.invalid(f"{path}.group", parent.group, problem) for problem in problems]
    errors += segment(f"{path}.resource", parent.resource)
    errors += segment(f"{path}.name", parent.name)
    if parent.namespace:
        errors += segment(f"{path}.namespace", parent.namespace)
    return errors


STRATEGY = IPAddressStrategy(kinds.IP_ADDRESS)
