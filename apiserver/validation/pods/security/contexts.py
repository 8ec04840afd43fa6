"""Security contexts of pods and containers, and the fields that each operating system allows (1.36)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from nominee.apiserver.validation import field, go_dump
from nominee.apiserver.validation.pods.every_container import security_contexts
from nominee.apiserver.validation.pods.security import sysctls, windows
from nominee.apiserver.validation.values import paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_ID_MAX = 2**31 - 1
_ID_PROBLEM = f"must be between 0 and {_ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_APP_ARMOR_LENGTH_MAX = 4095
# In upstream's order; some are the spec's own.
_POD_NOT_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "seccompProfile", "fsGroup",
    "fsGroupChangePolicy", "sysctls", "shareProcessNamespace", "runAsUser", "runAsGroup",
    "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_CONTAINER_NOT_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
    "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def _id(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= _ID_MAX else [field.invalid(path, value, _ID_PROBLEM)]


def of_pod(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    """Check the pod's security context, and which namespaces of the host it shares."""
    context = spec.securityContext
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if context.HasField(name):
            yield from _id(f"{path}.{name}", getattr(context, name))
    for index, group in enumerate(context.supplementalGroups):
        yield from _id(f"{path}.supplementalGroups[{index}]", group)
    if spec.shareProcessNamespace and spec.hostPID:
        problem = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field.invalid(f"{path}.shareProcessNamespace", spec.shareProcessNamespace, problem)
    if context.sysctls:
        yield from sysctls.sysctls(f"{path}.sysctls", spec)
    yield from _one_of(path, context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    if context.HasField("seccompProfile"):
        yield from _seccomp(f"{path}.seccompProfile", context.seccompProfile)
    if context.HasField("windowsOptions"):
        yield from windows.options(f"{path}.windowsOptions", context.windowsOptions)
    if context.HasField("appArmorProfile"):
        yield from app_armor(f"{path}.appArmorProfile", context.appArmorProfile)
    yield from _one_of(path, context, "supplementalGroupsPolicy", ("Merge", "Strict"))
    yield from _one_of(path, context, "seLinuxChangePolicy", ("MountOption", "Recursive"))


def _one_of(
    path: str,
    context: core.PodSecurityContext,
    name: Literal["fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy"],
    known: tuple[str, ...],
) -> list[Cause]:
    value = getattr(context, name)
    if not context.HasField(name) or value in known:
        return []
    return [field.not_supported(f"{path}.{name}", value, known)]


def _seccomp(path: str, profile: core.SeccompProfile) -> Iterator[Cause]:
    at = f"{path}.localhostProfile"
    if not profile.type:
        yield field.required(f"{path}.type", "type is required when seccompProfile is set")
    elif profile.type not in _PROFILES:
        yield field.not_supported(f"{path}.type", profile.type, _PROFILES)
    if profile.type != "Localhost":
        if profile.HasField("localhostProfile"):
            yield field.invalid(at, go_dump.dump(profile), "can only be set when seccomp type is Localhost")
    elif not profile.HasField("localhostProfile"):
        yield field.required(at, "must be set when seccomp type is Localhost")
    else:
        yield from paths.local_descending(at, profile.localhostProfile)


def app_armor(path: str, profile: core.AppArmorProfile) -> list[Cause]:
    """Check an AppArmor profile."""
    at, name = f"{path}.localhostProfile", profile.localhostProfile
    if not profile.type:
        return [field.required(f"{path}.type", "type is required when appArmorProfile is set")]
    if profile.type not in _PROFILES:
        return [field.not_supported(f"{path}.type", profile.type, _PROFILES)]
    if profile.type != "Localhost":
        if profile.HasField("localhostProfile"):
            return [field.invalid(at, name, "can only be set when AppArmor type is Localhost")]
        return []
    errors: list[Cause] = []
    if name != name.strip():
        errors.append(field.invalid(at, name, "must not be padded with whitespace"))
    elif not name:
        errors.append(field.required(at, "must be set when AppArmor type is Localhost"))
    if len(name.encode()) > _APP_ARMOR_LENGTH_MAX:
        errors.append(field.too_long(at, _APP_ARMOR_LENGTH_MAX))
    return errors


def of_container(path: str, context: core.SecurityContext, *, host_users: bool) -> list[Cause]:
    """Check a container's security context."""
    errors: list[Cause] = []
    if context.HasField("runAsUser"):
        errors += _id(f"{path}.runAsUser", context.runAsUser)
    if context.HasField("runAsGroup"):
        errors += _id(f"{path}.runAsGroup", context.runAsGroup)
    if context.HasField("procMount"):
        at, value = f"{path}.procMount", context.procMount
        errors += field.one_of(at, value, ("Default", "Unmasked"))
        if value == "Unmasked" and host_users:
            errors.append(field.invalid(at, value, "`hostUsers` must be false to use `Unmasked`"))
    if context.HasField("seccompProfile"):
        errors += _seccomp(f"{path}.seccompProfile", context.seccompProfile)
    if context.HasField("allowPrivilegeEscalation") and not context.allowPrivilegeEscalation:
        refused = "cannot set `allowPrivilegeEscalation` to false and"
        if context.privileged:
            errors.append(field.invalid(path, go_dump.dump(context), f"{refused} `privileged` to true"))
        problem = f"{refused} `capabilities.Add` CAP_SYS_ADMIN"
        errors += [
            field.invalid(path, go_dump.dump(context), problem)
            for each in context.capabilities.add
            if each == "CAP_SYS_ADMIN"
        ]
    if context.HasField("windowsOptions"):
        errors += windows.options(f"{path}.windowsOptions", context.windowsOptions)
    if context.HasField("appArmorProfile"):
        errors += app_armor(f"{path}.appArmorProfile", context.appArmorProfile)
    return errors


def of_os(path: str, spec: core.PodSpec) -> list[Cause]:
    """Check that no field is set that the pod's operating system does not have."""
    if spec.os.name == "linux":
        problem = "windows options cannot be set for a linux pod"
        found = [(f"{path}.securityContext", spec.securityContext), *security_contexts(path, spec)]
        return [
            field.forbidden(f"{at}.windowsOptions", problem)
            for at, context in found
            if context.HasField("windowsOptions")
        ]
    problem = "cannot be set for a windows pod"
    errors: list[Cause] = []
    given = {descriptor.name for descriptor, _ in spec.securityContext.ListFields()}
    for name in _POD_NOT_WINDOWS:
        if name in ("hostUsers", "shareProcessNamespace", "hostPID", "hostIPC"):
            if spec.HasField(name) and (
                getattr(spec, name) or name in ("hostUsers", "shareProcessNamespace")
            ):
                errors.append(field.forbidden(f"{path}.{name}", problem))
        elif name in given:
            errors.append(field.forbidden(f"{path}.securityContext.{name}", problem))
    for at, context in security_contexts(path, spec):
        said = {descriptor.name for descriptor, _ in context.ListFields()}
        errors += [
            field.forbidden(f"{at}.{name}", problem) for name in _CONTAINER_NOT_WINDOWS if name in said
        ]
    return errors


def of_host_users(path: str, spec: core.PodSpec) -> list[Cause]:
    if not spec.HasField("hostUsers") or spec.hostUsers:
        return []
    problem = "when `hostUsers` is false"
    shared = (("hostNetwork", spec.hostNetwork), ("hostPID", spec.hostPID), ("hostIPC", spec.hostIPC))
    return [field.forbidden(f"{path}.{name}", problem) for name, is_shared in shared if is_shared]
