"""Nodes (kube-apiserver 1.36, ValidateNode, ValidateNodeUpdate). Names of taints' paths are upstream's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apiserver.validation import addresses, field, metadata, names, quantities
from apiserver.validation.scheduling_terms import label_name, taint_effect
from machinery.api.errors import Cause
from machinery.api.pb import core
from machinery.wire.scalars import format_time

_CIDR_CHANGED = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_CHANGED = 'node updates may not change providerID except from "" to valid'


def node(obj: core.Node) -> list[Cause]:
    """Beside its metadata."""
    return taints("metadata.taints", obj.spec.taints) + _amounts(obj) + _ranges(obj.spec.podCIDRs)


def _ranges(cidrs: Sequence[str]) -> list[Cause]:
    """One for each family of addresses."""
    path = "spec.podCIDRs"
    errors = [cause for i, cidr in enumerate(cidrs) for cause in addresses.ip_range(f"{path}[{i}]", cidr)]
    if len(cidrs) > 1 and (len(cidrs) > 2 or len({":" in cidr for cidr in cidrs}) < 2):
        problem = "may specify no more than one CIDR for each IP family"
        errors.append(field.invalid(path, list(cidrs), problem))
    errors += [
        field.duplicate(f"{path}[{index}]", cidr) for index, cidr in enumerate(cidrs) if cidr in cidrs[:index]
    ]
    return errors


def update(new: core.Node, old: core.Node) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    errors += _amounts(new)
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(new.status.addresses):
        pair = (address.type, address.address)
        if pair in seen:
            value = {"Type": address.type, "Address": address.address}
            errors.append(field.duplicate(f"status.addresses[{index}]", value))
        seen.add(pair)
    if old.spec.podCIDRs:
        before, after = old.spec.podCIDRs, new.spec.podCIDRs
        changed = (
            sum(one != other for one, other in zip(before, after, strict=True))
            if len(before) == len(after)
            else 1
        )
        errors += [field.forbidden("spec.podCIDRs", _CIDR_CHANGED)] * changed
    if old.spec.providerID and old.spec.providerID != new.spec.providerID:
        errors.append(field.forbidden("spec.providerID", _PROVIDER_CHANGED))
    if new.spec.taints:
        errors += taints("metadata.taints", new.spec.taints)
    if new.spec.externalID != old.spec.externalID:
        errors.append(field.forbidden("spec.externalID", "may not be updated"))
    return errors


def taints(path: str, found: Iterable[core.Taint]) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found):
        at = f"{path}[{index}]"
        errors += label_name(f"{at}.key", taint.key)
        problems = names.label_value(taint.value)
        if problems:
            errors.append(field.invalid(f"{at}.value", taint.value, ";".join(problems)))
        errors += taint_effect(f"{at}.effect", taint.effect, allow_empty=False)
        pair = (taint.key, taint.effect)
        if pair in seen:
            errors.append(_twice(at, taint))
        seen.add(pair)
    return errors


def _twice(path: str, taint: core.Taint) -> Cause:
    added = format_time(taint.timeAdded.seconds) if taint.HasField("timeAdded") else None
    # The internal type has no names of its own for JSON.
    value = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": added}
    error = field.duplicate(path, value)
    return Cause(error.reason, f"{error.message}: taints must be unique by key and effect pair", path)


def _amounts(obj: core.Node) -> list[Cause]:
    errors: list[Cause] = []
    for part in ("capacity", "allocatable"):
        values = getattr(obj.status, part)
        for name in sorted(values):
            errors += quantities.amount(f"status.{part}.{name}", name, values[name])
    return errors
