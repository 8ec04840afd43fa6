"""Where a pod's volume comes from, a function a source (kube-apiserver 1.36, validateVolumeSource).

In-tree drivers that are gone are checked for what they need to be named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from apiserver.validation import device_names, environment, field, names, paths
from machinery.errors import Cause
from machinery.pb import core
from machinery.quantity import Quantity

_MORE = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_BYTE_PROBLEM = "must be between 0 and 255, inclusive"
_TOKEN_SECONDS_MIN = 10 * 60
_TOKEN_SECONDS_MAX = 1 << 32
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\s]+)?")
_EUI = re.compile(r"eui.[a-zA-Z0-9]{16}")
_NAA = re.compile(r"naa.[a-zA-Z0-9]{32}")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def _needs(path: str, source: Any, *needed: str) -> list[Cause]:
    return [field.required(f"{path}.{name}") for name in needed if not getattr(source, name)]


def _byte(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= 255 else [field.invalid(path, value, _BYTE_PROBLEM)]


def _empty_dir(path: str, source: core.EmptyDirVolumeSource) -> list[Cause]:
    if source.HasField("sizeLimit") and Quantity.parse(source.sizeLimit.string or "0").sign < 0:
        problem = "SizeLimit field must be a valid resource quantity"
        return [field.forbidden(f"{path}.sizeLimit", problem)]
    return []


def host_path(path: str, source: core.HostPathVolumeSource) -> list[Cause]:
    if not source.path:
        return [field.required(f"{path}.path")]
    errors = paths.no_backsteps(f"{path}.path", source.path)
    if source.HasField("type") and source.type not in _HOST_PATH_TYPES:
        errors.append(field.not_supported(f"{path}.type", source.type, _HOST_PATH_TYPES))
    return errors


def _git_repo(path: str, source: core.GitRepoVolumeSource) -> list[Cause]:
    errors = _needs(path, source, "repository")
    return errors + paths.local_descending(f"{path}.directory", source.directory)


def _disk(path: str, source: core.GCEPersistentDiskVolumeSource) -> list[Cause]:
    at = path.removesuffix("gcePersistentDisk") + "persistentDisk"
    return _needs(at, source, "pdName") + _byte(f"{at}.partition", source.partition)


def _block_store(path: str, source: core.AWSElasticBlockStoreVolumeSource) -> list[Cause]:
    return _needs(path, source, "volumeID") + _byte(f"{path}.partition", source.partition)


def _items(path: str, items: Iterable[core.KeyToPath]) -> list[Cause]:
    errors: list[Cause] = []
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        errors += _needs(at, item, "key", "path")
        errors += paths.local_non_reserved(f"{at}.path", item.path)
        if item.HasField("mode"):
            errors += paths.mode(f"{at}.mode", item.mode)
    return errors


def _default_mode(path: str, source: Any) -> list[Cause]:
    return paths.mode(f"{path}.defaultMode", source.defaultMode) if source.HasField("defaultMode") else []


def _secret(path: str, source: core.SecretVolumeSource) -> list[Cause]:
    errors = _needs(path, source, "secretName") + _default_mode(path, source)
    return errors + _items(f"{path}.items", source.items)


def _config_map(path: str, source: core.ConfigMapVolumeSource) -> list[Cause]:
    errors = _needs(path, source.localObjectReference, "name") + _default_mode(path, source)
    return errors + _items(f"{path}.items", source.items)


def nfs(path: str, source: core.NFSVolumeSource) -> list[Cause]:
    errors = _needs(path, source, "server", "path")
    if not source.path.startswith("/"):
        errors.append(field.invalid(f"{path}.path", source.path, "must be an absolute path"))
    return errors


def _iscsi(path: str, source: core.ISCSIVolumeSource) -> list[Cause]:
    errors = _needs(path, source, "targetPortal")
    if not source.iqn:
        errors.append(field.required(f"{path}.iqn"))
    elif not source.iqn.startswith(("iqn", "eui", "naa")):
        problem = "must be valid format starting with iqn, eui, or naa"
        errors.append(field.invalid(f"{path}.iqn", source.iqn, problem))
    elif not any(pattern.fullmatch(source.iqn) for pattern in (_IQN, _EUI, _NAA)):
        errors.append(field.invalid(f"{path}.iqn", source.iqn, "must be valid format"))
    errors += _byte(f"{path}.lun", source.lun)
    if (source.chapAuthDiscovery or source.chapAuthSession) and not source.HasField("secretRef"):
        errors.append(field.required(f"{path}.secretRef"))
    return errors


def _claim(path: str, source: core.PersistentVolumeClaimVolumeSource) -> list[Cause]:
    return _needs(path, source, "claimName")


def downward_file(path: str, file: core.DownwardAPIVolumeFile) -> list[Cause]:
    errors = _needs(path, file, "path") + paths.local_non_reserved(f"{path}.path", file.path)
    if file.HasField("fieldRef"):
        errors += environment.field_ref(f"{path}.fieldRef", file.fieldRef, environment.VOLUME_FIELD_PATHS)
        if file.HasField("resourceFieldRef"):
            problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(field.invalid(path, "resource", problem))
    elif file.HasField("resourceFieldRef"):
        errors += environment.resource_ref(f"{path}.resourceFieldRef", file.resourceFieldRef, volume=True)
    else:
        errors.append(field.required(path, "one of fieldRef and resourceFieldRef is required"))
    if file.HasField("mode"):
        errors += paths.mode(f"{path}.mode", file.mode)
    return errors


def _downward(path: str, source: core.DownwardAPIVolumeSource) -> list[Cause]:
    errors = _default_mode(path, source)
    for file in source.items:
        # Upstream does not say which.
        errors += downward_file(path, file)
    return errors


def _fibre_channel(path: str, source: core.FCVolumeSource) -> list[Cause]:
    errors: list[Cause] = []
    at = f"{path}.targetWWNs"
    if not source.targetWWNs and not source.wwids:
        errors.append(field.required(at, "must specify either targetWWNs or wwids, but not both"))
    if source.targetWWNs and source.wwids:
        problem = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(field.invalid(at, list(source.targetWWNs), problem))
    if source.targetWWNs:
        if not source.HasField("lun"):
            problem = "lun is required if targetWWNs is specified"
            errors.append(field.required(f"{path}.lun", problem))
        else:
            errors += _byte(f"{path}.lun", source.lun)
    return errors


def _projected(path: str, source: core.ProjectedVolumeSource) -> list[Cause]:
    errors = _default_mode(path, source)
    seen: set[str] = set()

    def once(target: str, shown: str) -> list[Cause]:
        if target and target in seen:
            return [field.invalid(path, shown, "conflicting duplicate paths")]
        seen.add(target)
        return []

    for index, each in enumerate(source.sources):
        at = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if each.HasField(name):
                projection = getattr(each, name)
                errors += _needs(f"{at}.{name}", projection.localObjectReference, "name")
                errors += _items(f"{at}.{name}.items", projection.items)
                for item in projection.items:
                    errors += once(item.path, projection.localObjectReference.name)
        for file in each.downwardAPI.items:
            errors += downward_file(f"{at}.downwardAPI", file)
            errors += once(file.path, file.path)
        if each.HasField("serviceAccountToken"):
            errors += _token(path, f"{at}.serviceAccountToken", each.serviceAccountToken)
        if each.HasField("clusterTrustBundle"):
            errors += _needs(f"{at}.clusterTrustBundle", each.clusterTrustBundle, "path")
            errors += once(each.clusterTrustBundle.path, each.clusterTrustBundle.path)
        if len(each.ListFields()) > 1:
            errors.append(field.forbidden(at, f"{_MORE} per source"))
    return errors


def _token(path: str, at: str, token: core.ServiceAccountTokenProjection) -> list[Cause]:
    errors: list[Cause] = []
    seconds = token.expirationSeconds
    if seconds < _TOKEN_SECONDS_MIN:
        problem = "may not specify a duration less than 10 minutes"
        errors.append(field.invalid(f"{at}.expirationSeconds", seconds, problem))
    if seconds > _TOKEN_SECONDS_MAX:
        problem = "may not specify a duration larger than 2^32 seconds"
        errors.append(field.invalid(f"{at}.expirationSeconds", seconds, problem))
    if not token.path:
        return [*errors, field.required(f"{path}.path")]
    return errors + paths.local_non_reserved(f"{path}.path", token.path)


def _csi(path: str, source: core.CSIVolumeSource) -> list[Cause]:
    errors = device_names.driver(f"{path}.driver", source.driver)
    if source.HasField("nodePublishSecretRef") and not source.nodePublishSecretRef.name:
        errors.append(field.required(f"{path}.nodePublishSecretRef.name"))
    return errors


def _ephemeral(path: str, source: core.EphemeralVolumeSource) -> list[Cause]:
    from apiserver.validation.storage import claim_spec
    from apiserver.validation.templates import template_metadata

    at = f"{path}.volumeClaimTemplate"
    if not source.HasField("volumeClaimTemplate"):
        return [field.required(at)]
    template = source.volumeClaimTemplate
    return template_metadata(f"{at}.metadata", template.metadata) + claim_spec(f"{at}.spec", template.spec)


def _image(path: str, source: core.ImageVolumeSource) -> list[Cause]:
    errors = _needs(path, source, "reference")
    if source.pullPolicy not in _PULL_POLICIES:
        at = f"{path}.pullPolicy"
        errors.append(
            field.not_supported(at, source.pullPolicy, _PULL_POLICIES)
            if source.pullPolicy
            else field.required(at)
        )
    return errors


def _needed(*names_: str) -> Callable[[str, Any], list[Cause]]:
    return lambda path, source: _needs(path, source, *names_)


# In the order in which upstream looks; a volume with two has the later one forbidden.
SOURCES: dict[str, Callable[[str, Any], list[Cause]]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk,
    "awsElasticBlockStore": _block_store,
    "secret": _secret,
    "nfs": nfs,
    "iscsi": _iscsi,
    "glusterfs": _needed("endpoints", "path"),
    "flocker": lambda path, source: (
        []
        if source.datasetName or source.datasetUUID
        else [field.required(path, "one of datasetName and datasetUUID is required")]
    ),
    "persistentVolumeClaim": _claim,
    "rbd": _needed("monitors", "image"),
    "cinder": _needed("volumeID"),
    "cephfs": _needed("monitors"),
    "quobyte": _needed("volume"),
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _needed("driver"),
    "configMap": _config_map,
    "azureFile": _needed("secretName", "shareName"),
    "vsphereVolume": _needed("volumePath"),
    "photonPersistentDisk": _needed("pdID"),
    "portworxVolume": _needed("volumeID"),
    "azureDisk": _needed("diskName", "diskURI"),
    "storageos": _needed("volumeName"),
    "projected": _projected,
    "scaleIO": _needed("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
# How upstream's paths differ from the names of the fields where there is one too many.
_FORBIDDEN_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def volume_source(path: str, source: core.VolumeSource) -> list[Cause]:
    """Exactly one source, and what is wrong with it."""
    given = [name for name in SOURCES if source.HasField(name)]
    if not given:
        return [field.required(path, "must specify a volume type")]
    errors = SOURCES[given[0]](f"{path}.{given[0]}", getattr(source, given[0]))
    return errors + [
        field.forbidden(f"{path}.{_FORBIDDEN_NAMES.get(name, name)}", _MORE) for name in given[1:]
    ]


def subdomain(path: str, name: str) -> list[Cause]:
    return [field.invalid(path, name, problem) for problem in names.dns_subdomain(name)]
