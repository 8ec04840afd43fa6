"""Resource names and amounts (kube-apiserver 1.36, ValidateContainerResourceName and others)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import resource
from nominee.machinery.resources.quantity import Quantity, QuantityError

NOT_NEGATIVE = "must be greater than or equal to 0"
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = frozenset({"cpu", "memory"})
_HUGE_PAGES = "hugepages-"
_NATIVE_PREFIX = "kubernetes.io/"
# The resources that a quantity counts in whole pieces.
_STANDARD_INTEGERS = frozenset({"pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
    "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"})  # fmt: skip
_STANDARD_NAMES = _STANDARD | _STANDARD_INTEGERS | frozenset({
    "storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage"})  # fmt: skip

ResourceList = Mapping[str, resource.Quantity]


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_native(name: str) -> bool:
    """Kubernetes' own resource: without a domain, or in kubernetes.io."""
    return "/" not in name or _NATIVE_PREFIX in name


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """`example.com/gpu`: counted, never overcommitted."""
    if is_native(name) or name.startswith("requests."):
        return False
    return names.is_qualified("requests." + name)


def may_overcommit(name: str) -> bool:
    """Return whether a limit may be above its request."""
    return is_native(name) and not is_huge_page(name)


def _standard_name_problems(name: str) -> tuple[str, ...]:
    problems = names.qualified_name(name)
    if not problems and "/" not in name and name not in _STANDARD_NAMES and not is_huge_page(name):
        return ("must be a standard resource type or fully qualified",)
    return problems


@lru_cache(maxsize=4096)
def _name_problems(name: str) -> tuple[str, ...]:
    """Return the problems of a container's resource name."""
    problems = list(_standard_name_problems(name))
    if "/" not in name:
        if name not in _STANDARD and not is_huge_page(name):
            problems.append("must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        problems.append("doesn't follow extended resource name standard")
    return tuple(problems)


@lru_cache(maxsize=65536)
def _amount_problem(name: str, text: str) -> str:
    amount = Quantity.parse(text)
    if amount.sign < 0:
        return NOT_NEGATIVE
    if (name in _STANDARD_INTEGERS or is_extended(name)) and amount.milli_value() % 1000 != 0:
        return "must be an integer"
    return ""


def container_resource_name(path: str, name: str) -> list[Cause]:
    return field.check(path, name, _name_problems)


def standard_resource_name(path: str, name: str) -> list[Cause]:
    """Check a resource's name: one of Kubernetes' own, or one with a domain."""
    return field.check(path, name, _standard_name_problems)


def amount(path: str, name: str, quantity: resource.Quantity) -> list[Cause]:
    """Check a quantity of a resource: not negative, and whole where the resource is counted."""
    problem = _amount_problem(name, quantity.string)
    return [field.invalid(path, quantity.string, problem)] if problem else []


def basic(path: str, quantity: resource.Quantity) -> list[Cause]:
    """Check that a quantity, rounded to whole units, is not negative."""
    value = Quantity.parse(quantity.string or "0").value()
    return [] if value >= 0 else [field.invalid(path, value, "must be a valid resource quantity")]


def requirements(
    path: str, requests: ResourceList, limits: ResourceList, *, pod_level: bool = False
) -> list[Cause]:
    """Check the requests and limits of a container, or of a pod as a whole."""
    errors: list[Cause] = []
    huge = regular = False
    for name in sorted(limits):
        at = f"{path}.limits[{name}]"
        errors += pod_resource_name(at, name) if pod_level else container_resource_name(at, name)
        errors += amount(at, name, limits[name])
        if is_huge_page(name):
            errors += _pages(at, name, limits[name].string)
        huge, regular = huge or is_huge_page(name), regular or name in _POD_LEVEL
    for name in sorted(requests):
        at = f"{path}.requests[{name}]"
        errors += pod_resource_name(at, name) if pod_level else container_resource_name(at, name)
        errors += amount(at, name, requests[name])
        limit = limits.get(name) if name in limits else None
        if limit is not None:
            errors += _against_limit(f"{path}.requests", name, requests[name].string, limit.string)
        elif not may_overcommit(name):
            errors.append(
                field.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            )
        if is_huge_page(name):
            errors += _pages(at, name, requests[name].string)
        huge, regular = huge or is_huge_page(name), regular or name in _POD_LEVEL
    if huge and not regular:
        errors.append(field.forbidden(path, "HugePages require cpu or memory"))
    return errors


def _pages(path: str, name: str, text: str) -> list[Cause]:
    """Whole pages of the size that the resource's name says."""
    try:
        size = Quantity.parse(name.removeprefix(_HUGE_PAGES))
        whole = size.sign > 0 and size.milli_value() % 1000 == 0
        if whole and Quantity.parse(text).value() % size.value() == 0:
            return []
    except QuantityError:
        pass
    return [field.invalid(path, text, f"{text} is not positive integer multiple of {name}")]


def pod_resource_name(path: str, name: str) -> list[Cause]:
    """Check that a pod as a whole may request the resource."""
    errors = standard_resource_name(path, name)
    if not errors and name not in _POD_LEVEL and not is_huge_page(name):
        supported = ("cpu", _HUGE_PAGES, "memory")
        errors.append(field.not_supported(path, name, supported))
    return errors


def _against_limit(path: str, name: str, request: str, limit: str) -> list[Cause]:
    if request == limit:
        return []
    asked, most = Quantity.parse(request), Quantity.parse(limit)
    if asked != most and not may_overcommit(name):
        return [field.invalid(path, request, f"must be equal to {name} limit of {limit}")]
    if asked > most:
        return [field.invalid(path, request, f"must be less than or equal to {name} limit of {limit}")]
    return []
