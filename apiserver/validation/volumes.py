"""A pod's volumes: a name of its own, and exactly one source (kube-apiserver 1.36, validateVolumes)."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.validation import field, names
from machinery.errors import Cause
from machinery.pb import core


def volumes(path: str, found: Iterable[core.Volume]) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(found):
        at = f"{path}[{index}]"
        errors += one_source(at, [descriptor.name for descriptor, _ in volume.volumeSource.ListFields()])
        errors += _source(at, volume.volumeSource)
        if not volume.name:
            errors.append(field.required(f"{at}.name"))
        else:
            errors += [
                field.invalid(f"{at}.name", volume.name, problem) for problem in names.dns_label(volume.name)
            ]
            if volume.name in seen:
                errors.append(field.duplicate(f"{at}.name", volume.name))
            seen.add(volume.name)
    return errors


def one_source(path: str, sources: list[str]) -> list[Cause]:
    """Errors for none (here: at `path`), and for each beyond the first."""
    if not sources:
        return [field.required(path, "must specify a volume type")]
    # Upstream looks for emptyDir first, and then for the others by their numbers.
    ordered = sorted(sources, key=lambda name: name != "emptyDir")
    problem = "may not specify more than 1 volume type"
    return [field.forbidden(f"{path}.{name}", problem) for name in ordered[1:]]


def _source(path: str, source: core.VolumeSource) -> list[Cause]:
    errors: list[Cause] = []
    if source.HasField("hostPath"):
        errors += host_path(f"{path}.hostPath", source.hostPath)
    if source.HasField("persistentVolumeClaim") and not source.persistentVolumeClaim.claimName:
        errors.append(field.required(f"{path}.persistentVolumeClaim.claimName"))
    if source.HasField("secret") and not source.secret.secretName:
        errors.append(field.required(f"{path}.secret.secretName"))
    if source.HasField("configMap") and not source.configMap.localObjectReference.name:
        errors.append(field.required(f"{path}.configMap.name"))
    return errors


def host_path(path: str, source: core.HostPathVolumeSource) -> list[Cause]:
    if not source.path:
        return [field.required(f"{path}.path")]
    if ".." in source.path.split("/"):
        return [field.invalid(f"{path}.path", source.path, "must not contain '..'")]
    return []


def mounts(path: str, containers: Iterable[core.Container], spec: core.PodSpec) -> list[Cause]:
    """Where containers mount volumes: such a volume is there, and each place is used once."""
    known = {volume.name for volume in spec.volumes}
    errors: list[Cause] = []
    for number, container in enumerate(containers):
        places: set[str] = set()
        for index, mount in enumerate(container.volumeMounts):
            at = f"{path}[{number}].volumeMounts[{index}]"
            if not mount.name:
                errors.append(field.required(f"{at}.name"))
            elif mount.name not in known:
                errors.append(field.not_found(f"{at}.name", mount.name))
            if not mount.mountPath:
                errors.append(field.required(f"{at}.mountPath"))
            elif mount.mountPath in places:
                errors.append(field.invalid(f"{at}.mountPath", mount.mountPath, "must be unique"))
            places.add(mount.mountPath)
    return errors
