"""PUT and PATCH of pods/resize: nothing but resources (and resize policies) of containers changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSequence, Sequence

from nominee.apiserver.kinds.core.pods.strategy import PodStrategy, bump_generation
from nominee.apiserver.kinds.core.pods.validation import pod
from nominee.apiserver.kinds.strategy import Environment, keep, keep_metadata
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods.annotations import MIRROR_ANNOTATION
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, resource
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.resources import qos

RESIZABLE = ("cpu", "memory")
_ONLY = "only cpu and memory resources are mutable"

ResourceList = Mapping[str, resource.Quantity]


def update(new: core.Pod, old: core.Pod, gates: Gates) -> list[Cause]:
    """Check a resize: only resources change, and the quality of service stays (ValidatePodResize)."""
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    errors += pod(new, old, pod_options.of(gates, old.spec))
    pod_level = gates.enabled("InPlacePodLevelResourcesVerticalScaling")
    if not pod_level and (_pod_level(old) or _pod_level(new)):
        return [
            field.forbidden(
                "",
                "resize of pods with pod-level resources is forbidden when"
                " InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled",
            )
        ]
    if MIRROR_ANNOTATION in old.metadata.annotations:
        return [field.forbidden("", "static pods cannot be resized")]
    if old.spec.HasField("os") and old.spec.os.name == "windows":
        return [field.forbidden("", "windows pods cannot be resized")]

    if qos.recorded_qos_class(old) != qos.qos_class(new):
        errors.append(
            field.invalid("spec", new.status.qosClass, "Pod QOS Class may not change as a result of resizing")
        )
    if not _node_supports_resize(old):
        errors.append(field.forbidden("spec", "Pod running on node without support for resize"))
    munged = copy_of(new.spec)
    if pod_level and (_pod_level(old) or _pod_level(new)):
        errors += _pod_level_changes(munged, new.spec, old.spec)
    if old.status.nodeAllocatableResourceClaimStatuses:
        errors.append(field.forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    order = _order("containers", new.spec.containers, old.spec.containers)
    order += _order("initContainers", new.spec.initContainers, old.spec.initContainers)
    if order:
        return errors + order
    return errors + _container_changes(munged, new.spec, old.spec, gates, clean=not errors)


def _pod_level(obj: core.Pod) -> bool:
    spec = obj.spec
    return spec.HasField("resources") and bool(spec.resources.requests or spec.resources.limits)


def _node_supports_resize(obj: core.Pod) -> bool:
    """A running container reports its resources where the kubelet knows in-place resize."""
    for status in obj.status.containerStatuses:
        if status.state.HasField("running"):
            return status.HasField("resources")
    return True


def _order(name: str, new: Sequence[core.Container], old: Sequence[core.Container]) -> list[Cause]:
    if len(new) != len(old):
        return [field.forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")]
    return [
        field.forbidden(f"spec.{name}[{index}].name", f"{name} may not be renamed or reordered on resize")
        for index, (one, other) in enumerate(zip(new, old, strict=True))
        if one.name != other.name
    ]


def _removed(new: ResourceList, old: ResourceList) -> bool:
    return any(name not in new for name in old)


def _put_back(new: core.ResourceRequirements, old: core.ResourceRequirements) -> None:
    """Reset the resizable resources of `new` to those of `old`, in place."""
    for target, source in ((new.requests, old.requests), (new.limits, old.limits)):
        for name in RESIZABLE:
            if name in source:
                target[name].CopyFrom(source[name])
            elif name in target:
                del target[name]


def _put_back_container(container: core.Container, before: core.Container) -> None:
    """Upstream forgets the claims here, so a container that has some cannot be resized."""
    _put_back(container.resources, before.resources)
    container.resources.ClearField("claims")


def _pod_level_changes(munged: core.PodSpec, new: core.PodSpec, old: core.PodSpec) -> Iterator[Cause]:
    had, has = old.HasField("resources"), new.HasField("resources")
    if had and not has:
        yield field.forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    if had:
        if _removed(new.resources.requests, old.resources.requests):
            yield field.forbidden("spec.resources.requests", "pod-level resource requests cannot be removed")
        if _removed(new.resources.limits, old.resources.limits):
            yield field.forbidden("spec.resources.limits", "pod-level resource limits cannot be removed")
    if has:
        _put_back(munged.resources, old.resources)
        if not had and not munged.resources.ListFields():
            munged.ClearField("resources")
    if munged.HasField("resources") != had or (had and munged.resources != old.resources):
        yield field.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _container_changes(
    munged: core.PodSpec, new: core.PodSpec, old: core.PodSpec, gates: Gates, *, clean: bool
) -> list[Cause]:
    errors: list[Cause] = []
    all_init = gates.enabled("InPlacePodVerticalScalingInitContainers")
    for index, (container, before) in enumerate(zip(new.initContainers, old.initContainers, strict=True)):
        if all_init or before.restartPolicy == "Always":
            errors += _kept(f"spec.initContainers[{index}].resources", container.resources, before.resources)
    for index, (container, before) in enumerate(zip(new.containers, old.containers, strict=True)):
        errors += _kept(f"spec.containers[{index}].resources", container.resources, before.resources)
    for container, before in zip(munged.containers, old.containers, strict=True):
        _put_back_container(container, before)
        if container != before:
            errors.append(field.forbidden("spec", _ONLY))
    for index, (container, before) in enumerate(zip(munged.initContainers, old.initContainers, strict=True)):
        errors += _init_change(f"spec.initContainers[{index}]", container, before, all_init=all_init)
    if errors or not clean:
        return errors
    return [] if munged == old else [field.forbidden("spec", _ONLY)]


def _kept(path: str, new: core.ResourceRequirements, old: core.ResourceRequirements) -> Iterator[Cause]:
    if _removed(new.requests, old.requests):
        yield field.forbidden(f"{path}.requests", "resource requests cannot be removed")
    if _removed(new.limits, old.limits):
        yield field.forbidden(f"{path}.limits", "resource limits cannot be removed")


def _init_change(
    path: str, container: core.Container, before: core.Container, *, all_init: bool
) -> Iterator[Cause]:
    """Reset the resizable fields of `container` (init container or sidecar); return its other changes."""
    modified = container != before
    sidecar = container.restartPolicy == "Always"
    if not all_init and not sidecar:
        if modified:
            yield field.forbidden("spec", "resources for non-sidecar init containers are immutable")
            return
        return
    restarts = any(policy.restartPolicy == "RestartContainer" for policy in container.resizePolicy)
    _put_back_container(container, before)
    if container != before:
        where, which = (path, "init or sidecar") if all_init else ("spec", "sidecar")
        yield field.forbidden(where, f"only cpu and memory resources for {which} containers are mutable")
    if modified and not sidecar and restarts:
        yield field.forbidden(
            path,
            "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
        )


RESIZE_SINCE = Version(1, 32)
"""Before it there was no such subresource: the spec itself was patched."""


class PodResizeStrategy(PodStrategy):
    """See the module."""

    def prepare_for_update(self, new: core.Pod, old: core.Pod, env: Environment) -> None:
        _drop_other_changes(new, old, env)
        self.drop_disabled(new, old, env)
        bump_generation(new, old)

    def validate_update(self, new: core.Pod, old: core.Pod, env: Environment) -> list[Cause]:
        return update(new, old, env.gates)


def _drop_other_changes(new: core.Pod, old: core.Pod, env: Environment) -> None:
    """Everything but the resources is as it was; renamed or added containers are left for the validation."""
    if len(new.spec.containers) != len(old.spec.containers) or (
        len(new.spec.initContainers) != len(old.spec.initContainers)
    ):
        return
    spec = copy_of(old.spec)
    _take_resources(spec.containers, new.spec.containers)
    _take_resources(spec.initContainers, new.spec.initContainers)
    if env.gates.enabled("InPlacePodLevelResourcesVerticalScaling"):
        spec.ClearField("resources")
        if new.spec.HasField("resources"):
            spec.resources.CopyFrom(new.spec.resources)
    new.spec.CopyFrom(spec)
    keep(new, old, "status")
    keep_metadata(new, old)


def _take_resources(into: MutableSequence[core.Container], new: MutableSequence[core.Container]) -> None:
    if any(one.name != other.name for one, other in zip(into, new, strict=True)):
        # A reordering: show the validation what was asked for.
        del into[:]
        into.extend(new)
        return
    for target, source in zip(into, new, strict=True):
        target.resources.CopyFrom(source.resources)
        keep(target, source, "resizePolicy")
