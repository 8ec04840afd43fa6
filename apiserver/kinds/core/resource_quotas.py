"""ResourceQuotas (kube-apiserver 1.36, ValidateResourceQuota; registry/core/resourcequota)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_COMPUTE = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_POD_RESOURCES = _COMPUTE | {"pods"}
_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
    "CrossNamespacePodAffinity", "VolumeAttributesClass")  # fmt: skip
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_STANDARD = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods",
    "resourcequotas", "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps",
    "services.nodeports", "services.loadbalancers"})  # fmt: skip
_NOT_FOR_QUOTA = "must be a standard resource for quota"


def _is_standard(name: str) -> bool:
    return name in _STANDARD or quantities.is_huge_page(name) or name.startswith("requests.hugepages-")


def _name(path: str, name: str) -> Iterator[Cause]:
    yield from quantities.standard_resource_name(path, name)
    if "/" not in name and not _is_standard(name):
        yield field.invalid(path, name, _NOT_FOR_QUOTA)


def _amounts(path: str, amounts: quantities.ResourceList) -> Iterator[Cause]:
    for name in sorted(amounts):
        yield from _name(f"{path}[{name}]", name)
        yield from quantities.amount(f"{path}[{name}]", name, amounts[name])


def _validate(obj: core.ResourceQuota) -> list[Cause]:
    spec = obj.spec
    errors = list(_amounts("spec.hard", spec.hard))
    errors += _scopes(spec)
    if spec.HasField("scopeSelector"):
        errors += _selector("spec.scopeSelector.matchExpressions", spec)
    errors += _amounts("status.hard", obj.status.hard)
    return [*errors, *_amounts("status.used", obj.status.used)]


def _suits(scope: str, resource: str) -> bool:
    """Whether a scope can say anything about a resource."""
    if scope in (
        "Terminating",
        "NotTerminating",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    ):
        return resource in _POD_RESOURCES
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return True


def _scopes(spec: core.ResourceQuotaSpec) -> list[Cause]:
    errors: list[Cause] = []
    path, listed = "spec.scopes", list(spec.scopes)
    for scope in listed:
        if scope not in _SCOPES:
            errors.append(field.invalid(path, listed, "unsupported scope"))
        errors += [
            field.invalid(path, listed, "unsupported scope applied to resource")
            for name in sorted(spec.hard)
            if _is_standard(name) and not _suits(scope, name)
        ]
    return errors + _conflicts(path, spec, set(listed))


def _conflicts(path: str, spec: core.ResourceQuotaSpec, scopes: set[str]) -> list[Cause]:
    shown = list(spec.scopes) or None
    return [
        field.invalid(path, shown, "conflicting scopes") for pair in _OPPOSITES if scopes.issuperset(pair)
    ]


def _selector(path: str, spec: core.ResourceQuotaSpec) -> Iterator[Cause]:
    expressions = spec.scopeSelector.matchExpressions
    for found in expressions:
        if found.scopeName not in _SCOPES:
            yield field.invalid(f"{path}.scopeName", found.scopeName, "unsupported scope")
        for name in sorted(spec.hard):
            if _is_standard(name) and not _suits(found.scopeName, name):
                yield field.invalid(path, dump(spec.scopeSelector), "unsupported scope applied to resource")
        if found.scopeName not in ("PriorityClass", "VolumeAttributesClass") and found.operator != "Exists":
            problem = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating,"
                " ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort,"
                " ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            yield field.invalid(f"{path}.operator", found.operator, problem)
        if found.operator in ("In", "NotIn"):
            if not found.values:
                problem = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield field.required(f"{path}.values", problem)
        elif found.operator in ("Exists", "DoesNotExist"):
            if found.values:
                problem = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield field.invalid(f"{path}.values", list(found.values), problem)
        else:
            yield field.invalid(f"{path}.operator", found.operator, "not a valid selector operator")
    yield from _conflicts(path, spec, {found.scopeName for found in expressions})


def _validate_change(new: core.ResourceQuota, old: core.ResourceQuota) -> list[Cause]:
    after, before = list(new.spec.scopes), list(old.spec.scopes)
    return [] if set(after) == set(before) else [field.invalid("spec.scopes", after, field.IMMUTABLE)]


def _validate_status(new: core.ResourceQuota, old: core.ResourceQuota) -> list[Cause]:
    errors = list(_amounts("status.hard", new.status.hard))
    return [*errors, *_amounts("status.used", new.status.used)]


def _row(obj: core.ResourceQuota, now: float) -> Cells:
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(obj.status.hard):
        used = obj.status.used[name].string if name in obj.status.used else "0"
        text = f"{name}: {used}/{obj.status.hard[name].string}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [", ".join(requests), ", ".join(limits)]


RULES = KindRules(
    kind=kinds.RESOURCE_QUOTA,
    strategy=SimpleStrategy(kinds.RESOURCE_QUOTA, _validate, _validate_change, status=_validate_status),
    columns=Columns(
        _row,
        NAME,
        Column(
            "Request",
            "Request represents a minimum amount of cpu/memory that a container may consume.",
        ),
        Column(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use"
            " independent of contention on the node.",
        ),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
    read_your_write=True,
)
