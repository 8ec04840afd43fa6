"""AppArmor annotations of new pods, copied into the fields of their containers.

Source: KEP-24, version skew; kube-apiserver 1.36, registry/core/pod, applyAppArmorVersionSkew.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.validation.pods.every_container import Container, every_container
from nominee.apiserver.validation.pods.security import contexts as security
from nominee.machinery.api.pb import core

_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_SIMPLE = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}


def warnings(pod: core.Pod) -> list[str]:
    """Return warnings about annotations that no field repeats, before `apply` sets the field."""
    text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    return [f"metadata.annotations[{_PREFIX}{each.name}]: {text}" for each, _ in _alone(pod)]


def apply(pod: core.Pod) -> None:
    """Set in place the fields that only annotations of the pod set."""
    for container, profile in list(_alone(pod)):
        if profile is not None:
            container.securityContext.appArmorProfile.CopyFrom(profile)


def _alone(
    pod: core.Pod,
) -> Iterator[tuple[Container, core.AppArmorProfile | None]]:
    """Yield the containers whose AppArmor profile only an annotation sets; None for an invalid one."""
    annotations, context = pod.metadata.annotations, pod.spec.securityContext
    if not any(key.startswith(_PREFIX) for key in annotations) or pod.spec.os.name == "windows":
        return
    for container in every_container(pod.spec):
        key = _PREFIX + container.name
        if key not in annotations or container.securityContext.HasField("appArmorProfile"):
            continue
        profile = _profile(annotations[key])
        if profile is None or not context.HasField("appArmorProfile") or profile != context.appArmorProfile:
            yield container, profile


def _profile(annotation: str) -> core.AppArmorProfile | None:
    if annotation in _SIMPLE:
        return core.AppArmorProfile(type=_SIMPLE[annotation])
    name = annotation.removeprefix(_LOCALHOST)
    if name == annotation or not name:
        return None
    profile = core.AppArmorProfile(type="Localhost", localhostProfile=name)
    return None if security.app_armor("", profile) else profile
