"""Security contexts of pods and containers, and what each operating system allows (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.validation import field, go_dump, paths
from machinery.errors import Cause
from machinery.pb import core

_ID_MAX = 2**31 - 1
_ID_PROBLEM = f"must be between 0 and {_ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_APP_ARMOR_LENGTH_MAX = 4095
_POD_NOT_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls",
    "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_CONTAINER_NOT_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
    "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def _id(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= _ID_MAX else [field.invalid(path, value, _ID_PROBLEM)]


def of_pod(path: str, context: core.PodSecurityContext) -> list[Cause]:
    """Beside the sysctls."""
    errors: list[Cause] = []
    if context.HasField("fsGroup"):
        errors += _id(f"{path}.fsGroup", context.fsGroup)
    if context.HasField("runAsUser"):
        errors += _id(f"{path}.runAsUser", context.runAsUser)
    if context.HasField("runAsGroup"):
        errors += _id(f"{path}.runAsGroup", context.runAsGroup)
    for index, group in enumerate(context.supplementalGroups):
        errors += _id(f"{path}.supplementalGroups[{index}]", group)
    for name, known in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        value = getattr(context, name)
        if context.HasField(name) and value not in known:
            errors.append(field.not_supported(f"{path}.{name}", value, known))
    return errors + _profiles(path, context)


def _profiles(path: str, context: Any) -> list[Cause]:
    errors: list[Cause] = []
    if context.HasField("seccompProfile"):
        errors += _seccomp(f"{path}.seccompProfile", context.seccompProfile)
    if context.HasField("appArmorProfile"):
        errors += _app_armor(f"{path}.appArmorProfile", context.appArmorProfile)
    return errors


def _seccomp(path: str, profile: core.SeccompProfile) -> list[Cause]:
    errors: list[Cause] = []
    at = f"{path}.localhostProfile"
    if not profile.type:
        errors.append(field.required(f"{path}.type", "type is required when seccompProfile is set"))
    elif profile.type not in _PROFILES:
        errors.append(field.not_supported(f"{path}.type", profile.type, _PROFILES))
    if profile.type != "Localhost":
        if profile.HasField("localhostProfile"):
            problem = "can only be set when seccomp type is Localhost"
            errors.append(field.invalid(at, go_dump.dump(profile), problem))
    elif not profile.HasField("localhostProfile"):
        errors.append(field.required(at, "must be set when seccomp type is Localhost"))
    else:
        errors += paths.local_descending(at, profile.localhostProfile)
    return errors


def _app_armor(path: str, profile: core.AppArmorProfile) -> list[Cause]:
    at, name = f"{path}.localhostProfile", profile.localhostProfile
    if profile.type == "Localhost":
        if not name or not name.strip():
            problem = "must be set when AppArmor type is Localhost"
            if name.strip() == name:
                return [field.required(at, problem)]
        if name != name.strip():
            return [field.invalid(at, name, "must not be padded with whitespace")]
        if len(name) > _APP_ARMOR_LENGTH_MAX:
            return [field.too_long(at, _APP_ARMOR_LENGTH_MAX)]
        return []
    if not profile.type:
        return [field.required(f"{path}.type", "type is required when appArmorProfile is set")]
    if profile.type not in _PROFILES:
        return [field.not_supported(f"{path}.type", profile.type, _PROFILES)]
    if profile.HasField("localhostProfile"):
        return [field.invalid(at, name, "can only be set when AppArmor type is Localhost")]
    return []


def of_container(path: str, context: core.SecurityContext, *, host_users: bool) -> list[Cause]:
    errors: list[Cause] = []
    if context.HasField("runAsUser"):
        errors += _id(f"{path}.runAsUser", context.runAsUser)
    if context.HasField("runAsGroup"):
        errors += _id(f"{path}.runAsGroup", context.runAsGroup)
    if context.HasField("procMount"):
        at, value = f"{path}.procMount", context.procMount
        if value not in ("Default", "Unmasked"):
            errors.append(field.not_supported(at, value, ("Default", "Unmasked")))
        elif value == "Unmasked" and host_users:
            errors.append(field.invalid(at, value, "`hostUsers` must be false to use `Unmasked`"))
    errors += _profiles(path, context)
    if context.HasField("allowPrivilegeEscalation") and not context.allowPrivilegeEscalation:
        refused = "cannot set `allowPrivilegeEscalation` to false and"
        if context.privileged:
            problem = f"{refused} `privileged` to true"
            errors.append(field.invalid(path, go_dump.dump(context), problem))
        if "CAP_SYS_ADMIN" in context.capabilities.add:
            problem = f"{refused} `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(field.invalid(path, go_dump.dump(context), problem))
    return errors


def _contexts(path: str, spec: core.PodSpec) -> Iterator[tuple[str, core.SecurityContext]]:
    named: tuple[tuple[str, Iterable[Any]], ...] = (
        ("initContainers", spec.initContainers),
        ("containers", spec.containers),
        ("ephemeralContainers", (each.ephemeralContainerCommon for each in spec.ephemeralContainers)),
    )
    for name, found in named:
        for index, container in enumerate(found):
            if container.HasField("securityContext"):
                yield f"{path}.{name}[{index}].securityContext", container.securityContext


def of_os(path: str, spec: core.PodSpec) -> list[Cause]:
    """What may not be said for a pod of its operating system."""
    if spec.os.name == "linux":
        problem = "windows options cannot be set for a linux pod"
        found = [(f"{path}.securityContext", spec.securityContext), *_contexts(path, spec)]
        return [
            field.forbidden(f"{at}.windowsOptions", problem)
            for at, context in found
            if context.HasField("windowsOptions")
        ]
    problem = "cannot be set for a windows pod"
    errors: list[Cause] = []
    for name in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        value = spec.HasField(name) and (
            getattr(spec, name) or name in ("hostUsers", "shareProcessNamespace")
        )
        if value:
            errors.append(field.forbidden(f"{path}.{name}", problem))
    set_ = {descriptor.name for descriptor, _ in spec.securityContext.ListFields()}
    errors += [
        field.forbidden(f"{path}.securityContext.{name}", problem)
        for name in _POD_NOT_WINDOWS
        if name in set_
    ]
    for at, context in _contexts(path, spec):
        given = {descriptor.name for descriptor, _ in context.ListFields()}
        errors += [
            field.forbidden(f"{at}.{name}", problem) for name in _CONTAINER_NOT_WINDOWS if name in given
        ]
    return errors


def of_host_users(path: str, spec: core.PodSpec) -> list[Cause]:
    if not spec.HasField("hostUsers") or spec.hostUsers:
        return []
    problem = "when `pod.Spec.HostUsers` is false"
    shared = (("hostNetwork", spec.hostNetwork), ("HostPID", spec.hostPID), ("HostIPC", spec.hostIPC))
    return [field.forbidden(f"{path}.{name}", problem) for name, is_shared in shared if is_shared]
