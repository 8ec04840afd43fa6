"""Terms of PodGroups and of their templates in Workloads (scheduling.k8s.io/v1alpha2, 1.36).

Source: KEP-4671, KEP-5710, KEP-5732; the tags of k8s.io/api/scheduling/v1alpha2, from which upstream
generates its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nominee.apiserver.validation import declarative, field
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import workloads
from nominee.machinery.features.gates import Gates

_CLAIMS_MAX = 4
_CONSTRAINTS_MAX = 1
_PRIORITY_MAX = 1_000_000_000
_MODES = ("Pod", "PodGroup")
Terms = workloads.PodGroupSpec | workloads.PodGroupTemplate
Check = Callable[[str, Any], Iterable[Cause]]

# Fields and their gates; "" for DRAWorkloadResourceClaims, which is alpha and not here: never known.
GATED: dict[str, str] = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "",
    "disruptionMode": "WorkloadAwarePreemption",
    "priorityClassName": "WorkloadAwarePreemption",
    "priority": "WorkloadAwarePreemption",
}


def known(name: str, gates: Gates) -> bool:
    """Return whether the field has no gate, or its gate is on."""
    gate = GATED.get(name)
    return gate is None or (gate != "" and gates.enabled(gate))


def drop_disabled(new: Terms, old: Terms | None, gates: Gates) -> None:
    """Remove in place the fields that no gate makes known, unless `old` has them."""
    for name in GATED:
        if not known(name, gates) and (old is None or not is_set(old, name)):
            new.ClearField(name)


def is_set(terms: Terms, name: str) -> bool:
    """Return whether the field has a value; "" is not one."""
    return any(given.name == name and value != "" for given, value in terms.ListFields())


def checks() -> dict[str, Check]:
    """Return the rule of each field, in the order of upstream's struct."""
    return {
        "schedulingPolicy": _policy,
        "schedulingConstraints": _constraints,
        "resourceClaims": _claims,
        "disruptionMode": _mode,
        "priorityClassName": declarative.long_name,
        "priority": _priority,
    }


def terms(path: str, found: Terms, gates: Gates) -> Iterator[Cause]:
    """Check the terms of a new PodGroup or of a template."""
    for name, check in checks().items():
        at = f"{path}.{name}"
        if name != "schedulingPolicy" and not is_set(found, name):
            continue
        if not known(name, gates) and GATED[name]:
            yield field.forbidden(at, "")
        else:
            yield from check(at, getattr(found, name))


def _policy(path: str, policy: workloads.PodGroupSchedulingPolicy) -> list[Cause]:
    errors = declarative.union(path, policy, ("basic", "gang"))
    if not policy.HasField("gang"):
        return errors
    at, least = f"{path}.gang.minCount", policy.gang.minCount
    if least < 0:
        return [*errors, field.invalid(at, least, "must be greater than or equal to 1")]
    return errors + declarative.not_zero(at, least)


def _constraints(path: str, found: workloads.PodGroupSchedulingConstraints) -> list[Cause]:
    return list(declarative.items(f"{path}.topology", found.topology, _CONSTRAINTS_MAX, _constraint))


def _constraint(path: str, constraint: workloads.TopologyConstraint) -> list[Cause]:
    at = f"{path}.key"
    return declarative.label_key(at, constraint.key) if constraint.key else [field.required(at)]


def _claims(path: str, found: Any) -> list[Cause]:
    return list(declarative.items(path, found, _CLAIMS_MAX, _claim, key=lambda claim: claim.name))


def _claim(path: str, claim: workloads.PodGroupResourceClaim) -> Iterator[Cause]:
    members = ("resourceClaimName", "resourceClaimTemplateName")
    yield from declarative.union(path, claim, members)
    at = f"{path}.name"
    yield from declarative.short_name(at, claim.name) if claim.name else [field.required(at)]
    for name in members:
        if claim.HasField(name):
            yield from declarative.long_name(f"{path}.{name}", getattr(claim, name))


def _mode(path: str, mode: str) -> list[Cause]:
    return field.one_of(path, mode, _MODES)


def _priority(path: str, priority: int) -> list[Cause]:
    if priority <= _PRIORITY_MAX:
        return []
    return [field.invalid(path, priority, f"must be less than or equal to {_PRIORITY_MAX}")]
