"""Annotations of pods that mean something (kube-apiserver 1.36, ValidatePodSpecificAnnotations).

Those of seccomp and AppArmor came before the fields; what they say must be right, and what the fields say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nominee.apiserver.validation import field
from nominee.apiserver.validation.pods.every_container import every_container, named_security_contexts
from nominee.apiserver.validation.values import paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import core

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_LOCALHOST = "localhost/"
_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
_INT32_DIGITS = 10


def pod_annotations(new: core.Pod, old: core.Pod | None) -> list[Cause]:
    """Check the annotations of a pod; an invalid deletion cost that is stored already is kept."""
    annotations = new.metadata.annotations
    if not annotations:
        return []
    lenient = old is not None and not _valid_cost(old.metadata.annotations)
    return list(of_spec("metadata.annotations", annotations, new.spec, any_cost=lenient))


def of_spec(
    path: str, annotations: Mapping[str, str], spec: core.PodSpec, *, any_cost: bool = False
) -> Iterator[Cause]:
    """Check the annotations of a pod or of a template of pods, at `path`."""
    if not annotations:
        return
    if MIRROR_ANNOTATION in annotations and not spec.nodeName:
        problem = "must set spec.nodeName if mirror pod annotation is set"
        yield field.invalid(f"{path}[{MIRROR_ANNOTATION}]", annotations[MIRROR_ANNOTATION], problem)
    if not any_cost and not _valid_cost(annotations):
        yield field.invalid(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer")
    for key in sorted(annotations):
        if key == _SECCOMP_POD or key.startswith(_SECCOMP):
            yield from _seccomp(f"{path}.{key}", annotations[key])
    for key in sorted(annotations):
        if key.startswith(_APP_ARMOR):
            yield from _app_armor(f"{path}[{key}]", key, annotations[key], spec)


def _seccomp(path: str, profile: str) -> list[Cause]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(_LOCALHOST):
        return paths.local_descending(path, profile.removeprefix(_LOCALHOST))
    return [field.invalid(path, profile, "must be a valid seccomp profile")]


def _app_armor(path: str, key: str, profile: str, spec: core.PodSpec) -> Iterator[Cause]:
    container = key.removeprefix(_APP_ARMOR)
    if container not in (each.name for each in every_container(spec)):
        yield field.invalid(path, container, "container not found")
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCALHOST):
        yield field.invalid(path, profile, f"invalid AppArmor profile name: {go_quote(profile)}")


def against_fields(path: str, annotations: Mapping[str, str], spec: core.PodSpec) -> Iterator[Cause]:
    """Check that annotations and fields agree on seccomp and AppArmor; `path` is the spec's."""
    if not any(key.startswith((_SECCOMP, _SECCOMP_POD, _APP_ARMOR)) for key in annotations):
        return
    if _SECCOMP_POD in annotations and spec.securityContext.HasField("seccompProfile"):
        at = f"{path}.securityContext.seccompProfile"
        yield from _match(at, annotations[_SECCOMP_POD], spec.securityContext.seccompProfile, "seccomp")
    for at, name, context in named_security_contexts(path, spec):
        if _SECCOMP + name in annotations and context.HasField("seccompProfile"):
            text = annotations[_SECCOMP + name]
            yield from _match(f"{at}.seccompProfile", text, context.seccompProfile, "seccomp")
    if spec.os.name == "windows":
        return
    for at, name, context in named_security_contexts(path, spec):
        of = context if context.HasField("appArmorProfile") else spec.securityContext
        if _APP_ARMOR + name in annotations and of.HasField("appArmorProfile"):
            text = annotations[_APP_ARMOR + name]
            yield from _match(f"{at}.appArmorProfile", text, of.appArmorProfile, "apparmor")


def _match(
    path: str, annotation: str, profile: core.SeccompProfile | core.AppArmorProfile, what: str
) -> list[Cause]:
    fits = {
        "Unconfined": annotation == "unconfined",
        "RuntimeDefault": annotation == "runtime/default"
        or (what == "seccomp" and annotation == "docker/default"),
        "Localhost": annotation.startswith(_LOCALHOST),
    }
    if not fits.get(profile.type, True):
        return [field.forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    if profile.type == "Localhost" and annotation.removeprefix(_LOCALHOST) != profile.localhostProfile:
        problem = f"{what} profile in annotation and field must match"
        return [field.forbidden(f"{path}.localhostProfile", problem)]
    return []


def update(new: core.Pod, old: core.Pod) -> Iterator[Cause]:
    """Check that a mirror pod stays one."""
    before, after = old.metadata.annotations, new.metadata.annotations
    if before != after:
        for key in sorted(before):
            what = _fixed(key)
            if what and (key not in after or after[key] != before[key]):
                yield field.forbidden(_at(key), f"may not remove or update {what}")
        for key in sorted(after):
            what = _fixed(key)
            if what and key not in before:
                yield field.forbidden(_at(key), f"may not add {what}")
    yield from pod_annotations(new, old)


def _fixed(key: str) -> str:
    """Return the name of an annotation that may not change, for the error."""
    if key == MIRROR_ANNOTATION:
        return "mirror pod annotation"
    return "AppArmor annotations" if key.startswith(_APP_ARMOR) else ""


def _valid_cost(annotations: Mapping[str, str]) -> bool:
    """None, or a number without plus sign and leading zeros."""
    if DELETION_COST not in annotations:
        return True
    text = annotations[DELETION_COST]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (text != "0" and text[0] == "0"):
        return False
    return len(digits) <= _INT32_DIGITS and _INT32_MIN <= int(text) <= _INT32_MAX


def _at(key: str) -> str:
    return f"metadata.annotations[{key}]"
