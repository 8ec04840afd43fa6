"""A pod's volumes, and where its containers mount them (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods.volumes.sources import volume_source
from nominee.apiserver.validation.values import paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def volumes(
    path: str, found: Iterable[core.Volume], pod: str
) -> tuple[dict[str, core.VolumeSource], list[Cause]]:
    """Return the volumes that containers may mount, by name, and the errors of the others.

    `pod` is the name of the pod, "" in templates.
    """
    errors: list[Cause] = []
    good: dict[str, core.VolumeSource] = {}
    made: set[str] = set()
    if pod:
        made = {f"{pod}-{each.name}" for each in found if each.volumeSource.HasField("ephemeral")}
    for index, volume in enumerate(found):
        at, source = f"{path}[{index}]", volume.volumeSource
        own = list(volume_source(at, source, volume.name, pod))
        if not volume.name:
            own.append(field.required(f"{at}.name"))
        else:
            own += field.check(f"{at}.name", volume.name, names.dns_label)
        if volume.name in good:
            own.append(field.duplicate(f"{at}.name", volume.name))
        if not own:
            good[volume.name] = source
        errors += own
        if made and source.HasField("persistentVolumeClaim"):
            claim = source.persistentVolumeClaim.claimName
            if claim in made:
                problem = "must not reference a PVC that gets created for an ephemeral volume"
                errors.append(field.invalid(f"{at}.persistentVolumeClaim.claimName", claim, problem))
    return good, errors


def mounts(path: str, container: core.Container, known: Mapping[str, core.VolumeSource]) -> Iterator[Cause]:
    """Check that each mounted volume exists and that each path is used once."""
    places: set[str] = set()
    devices_ = {device.name: device.devicePath for device in container.volumeDevices}
    for index, mount in enumerate(container.volumeMounts):
        at = f"{path}[{index}]"
        if not mount.name:
            yield field.required(f"{at}.name")
        if mount.name not in known:
            yield field.not_found(f"{at}.name", mount.name)
        if not mount.mountPath:
            yield field.required(f"{at}.mountPath")
        if mount.mountPath in places:
            yield field.invalid(f"{at}.mountPath", mount.mountPath, "must be unique")
        places.add(mount.mountPath)
        if mount.name in devices_:
            yield field.invalid(f"{at}.name", mount.name, "must not already exist in volumeDevices")
        if mount.mountPath in devices_.values():
            problem = "must not already exist as a path in volumeDevices"
            yield field.invalid(f"{at}.mountPath", mount.mountPath, problem)
        yield from _sub_paths(path, at, mount)
        yield from _modes(path, mount, container)


def _sub_paths(path: str, at: str, mount: core.VolumeMount) -> Iterator[Cause]:
    if mount.subPath:
        yield from paths.local_descending(f"{path}.subPath", mount.subPath)
    if mount.subPathExpr:
        if mount.subPath:
            problem = "subPathExpr and subPath are mutually exclusive"
            yield field.invalid(f"{at}.subPathExpr", mount.subPathExpr, problem)
        yield from paths.local_descending(f"{path}.subPathExpr", mount.subPathExpr)


def _modes(path: str, mount: core.VolumeMount, container: core.Container) -> Iterator[Cause]:
    """Check the modes of mounts; as upstream's, the error does not name the mount."""
    if mount.HasField("mountPropagation"):
        at, value = f"{path}.mountPropagation", mount.mountPropagation
        yield from field.one_of(at, value, _PROPAGATIONS)
        if value == "Bidirectional" and not container.securityContext.privileged:
            problem = "Bidirectional mount propagation is available only to privileged containers"
            yield field.forbidden(at, problem)
    if mount.HasField("recursiveReadOnly"):
        at, value = f"{path}.recursiveReadOnly", mount.recursiveReadOnly
        if value not in _READ_ONLY:
            yield field.not_supported(at, value, _READ_ONLY)
        elif value != "Disabled":
            if not mount.readOnly:
                yield field.forbidden(at, "may only be specified when readOnly is true")
            if mount.HasField("mountPropagation") and mount.mountPropagation != "None":
                problem = "may only be specified when mountPropagation is None or not specified"
                yield field.forbidden(at, problem)


def devices(path: str, container: core.Container, known: Mapping[str, core.VolumeSource]) -> Iterator[Cause]:
    """Block devices: of claims only."""
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    mounted = {mount.name: mount.mountPath for mount in container.volumeMounts}
    for index, device in enumerate(container.volumeDevices):
        at, name, place = f"{path}[{index}]", device.name, device.devicePath
        if not name:
            yield field.required(f"{at}.name")
        if name in seen_names:
            yield field.invalid(f"{at}.name", name, "must be unique")
        source = known.get(name)
        if source is None:
            yield field.not_found(f"{at}.name", name)
        elif not source.HasField("persistentVolumeClaim") and not source.HasField("ephemeral"):
            problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield field.invalid(f"{at}.name", name, problem)
        if not place:
            yield field.required(f"{at}.devicePath")
        if place in seen_paths:
            yield field.invalid(f"{at}.devicePath", place, "must be unique")
        if ".." in place.split("/"):
            yield field.invalid(f"{at}.devicePath", place, "can not contain backsteps ('..')")
        else:
            seen_paths.add(place)
        if name in mounted:
            yield field.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if place in mounted.values():
            yield field.invalid(f"{at}.devicePath", place, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)
