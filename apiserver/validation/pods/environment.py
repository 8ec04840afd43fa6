"""Environment variables of containers and where their values come from (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

_VARIABLE_PROBLEM = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELD_PATHS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
# What a pod's field label may be converted from at all.
_CONVERTED = frozenset({
    *_FIELD_PATHS, *VOLUME_FIELD_PATHS,
    "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"})  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def variable_name(path: str, name: str) -> list[Cause]:
    if all(" " <= character <= "~" and character != "=" for character in name):
        return []
    return [field.invalid(path, name, _VARIABLE_PROBLEM)]


def variables(path: str, found: Iterable[core.EnvVar]) -> Iterator[Cause]:
    """Check environment variables and the sources of their values."""
    for index, variable in enumerate(found):
        at = f"{path}[{index}]"
        yield from (
            variable_name(f"{at}.name", variable.name) if variable.name else [field.required(f"{at}.name")]
        )
        if variable.HasField("valueFrom"):
            yield from _source(f"{at}.valueFrom", variable.valueFrom, variable.value)


def _source(path: str, source: core.EnvVarSource, value: str) -> Iterator[Cause]:
    if source.HasField("fieldRef"):
        yield from field_ref(f"{path}.fieldRef", source.fieldRef, _FIELD_PATHS)
    if source.HasField("resourceFieldRef"):
        yield from resource_ref(f"{path}.resourceFieldRef", source.resourceFieldRef, volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if source.HasField(name):
            reference = getattr(source, name)
            yield from _key(f"{path}.{name}", reference.localObjectReference.name, reference.key)
    given = sum(source.HasField(name) for name in _SOURCES)
    if not given:
        problem = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or"
            " `fileKeyRef`"
        )
        yield field.invalid(path, "", problem)
    elif value:
        yield field.invalid(path, "", "may not be specified when `value` is not empty")
    elif given > 1:
        yield field.invalid(path, "", "may not have more than one field specified at a time")


def field_ref(path: str, reference: core.ObjectFieldSelector, known: tuple[str, ...]) -> list[Cause]:
    """Check a reference to a field of the pod; `known` are the fields that may be referred to."""
    if not reference.apiVersion:
        return [field.required(f"{path}.apiVersion")]
    if not reference.fieldPath:
        return [field.required(f"{path}.fieldPath")]
    label, at = reference.fieldPath, f"{path}.fieldPath"
    problem = ""
    outside, subscripted, key = (
        label.removesuffix("']").partition("['") if label.endswith("']") else ("", "", "")
    )
    if reference.apiVersion != "v1":
        problem = f"unsupported pod version: {reference.apiVersion}"
    elif subscripted and outside:
        if outside not in ("metadata.annotations", "metadata.labels"):
            problem = f"field label does not support subscript: {label}"
    elif label not in _CONVERTED:
        problem = f"field label not supported: {label}"
    if problem:
        return [field.invalid(at, label, f"error converting fieldPath: {problem}")]
    if subscripted and outside:
        key = key.lower() if outside == "metadata.annotations" else key
        return field.check(path, key, names.qualified_name)
    label = "spec.nodeName" if label == "spec.host" else label
    return field.one_of(at, label, known)


def resource_ref(path: str, reference: core.ResourceFieldSelector, *, volume: bool) -> Iterator[Cause]:
    """Check a reference to a resource of a container."""
    name = reference.resource
    if volume and not reference.containerName:
        yield field.required(f"{path}.containerName")
    elif not name:
        yield field.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        yield field.not_supported(f"{path}.resource", name, _RESOURCES)
    divisor = reference.divisor.string or "0"
    if Quantity.parse(divisor).sign == 0:
        return
    kind, units = "", _UNITS
    if name in ("limits.cpu", "requests.cpu"):
        problem = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield from [] if divisor in ("1", "1m") else [field.invalid(f"{path}.divisor", name, problem)]
        return
    if name in ("limits.memory", "requests.memory"):
        kind = "memory"
    elif name in ("limits.ephemeral-storage", "requests.ephemeral-storage"):
        kind = "local ephemeral storage"
    elif name.startswith(_HUGE_PAGES):
        kind = "hugepages"
    if kind and divisor not in units:
        problem = f"only divisor's values {', '.join(units)} are supported with the {kind} resource"
        yield field.invalid(f"{path}.divisor", name, problem)


def _key(path: str, name: str, key: str) -> list[Cause]:
    errors = field.check(f"{path}.name", name, names.dns_subdomain)
    if not key:
        return [*errors, field.required(f"{path}.key")]
    return errors + field.check(f"{path}.key", key, names.config_key)


def sources(path: str, found: Iterable[core.EnvFromSource]) -> list[Cause]:
    """Check envFrom; a wrong number of sources is an error of the whole list."""
    errors: list[Cause] = []
    for index, source in enumerate(found):
        at = f"{path}[{index}]"
        errors += variable_name(f"{at}.prefix", source.prefix)
        given = [name for name in ("configMapRef", "secretRef") if source.HasField(name)]
        for name in given:
            referred = getattr(source, name).localObjectReference.name
            where = f"{at}.{name}.name"
            if not referred:
                errors.append(field.required(where))
            errors += field.problems(
                where, referred, names.dns_subdomain(names.mask_trailing_dash(referred)) if referred else ()
            )
        if not given:
            errors.append(field.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(field.invalid(path, "", "may not have more than one field specified at a time"))
    return errors
