"""Where a pod's volume comes from, a function a source (kube-apiserver 1.36, validateVolumeSource).

In-tree drivers that are gone are checked for what they need to be named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.validation import field, go_dump, names
from nominee.apiserver.validation.claims import claim_template
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.pods import environment
from nominee.apiserver.validation.values import device_names, paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

MORE = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_BYTE_PROBLEM = "must be between 0 and 255, inclusive"
_TOKEN_SECONDS_MIN = 10 * 60
_TOKEN_SECONDS_MAX = 1 << 32
_IQN = re.compile(r".*iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\s]+)")
_EUI = re.compile(r"eui.[a-zA-Z0-9]{16}")
_HOST_PORT = re.compile(r"(?:[^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*")
_TENANT_LENGTH_MAX = 64
_INITIATOR_LENGTH_MAX = 64
_INITIATOR_PROBLEM = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is"
    " specified."
)
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_DISK_URIS = {
    True: (
        "/subscriptions/",
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    ),
    False: ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
}
_NAA = re.compile(r"naa.[a-zA-Z0-9]{32}")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def needs(path: str, source: Any, *needed: str) -> list[Cause]:
    return [field.required(f"{path}.{name}") for name in needed if not getattr(source, name)]


def _byte(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= 255 else [field.invalid(path, value, _BYTE_PROBLEM)]


def _empty_dir(path: str, source: core.EmptyDirVolumeSource) -> list[Cause]:
    if source.HasField("sizeLimit") and Quantity.parse(source.sizeLimit.string or "0").sign < 0:
        return [field.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def host_path(path: str, source: core.HostPathVolumeSource) -> list[Cause]:
    """Check a path on the node and its type."""
    if not source.path:
        return [field.required(f"{path}.path")]
    errors = paths.no_backsteps(f"{path}.path", source.path)
    if source.HasField("type") and source.type not in _HOST_PATH_TYPES:
        errors.append(field.not_supported(f"{path}.type", source.type, _HOST_PATH_TYPES))
    return errors


def _git_repo(path: str, source: core.GitRepoVolumeSource) -> list[Cause]:
    errors = needs(path, source, "repository")
    return errors + paths.local_descending(f"{path}.directory", source.directory)


def _disk(path: str, source: core.GCEPersistentDiskVolumeSource) -> list[Cause]:
    at = path.removesuffix("gcePersistentDisk") + "persistentDisk"
    return needs(at, source, "pdName") + _byte(f"{at}.partition", source.partition)


def _block_store(path: str, source: core.AWSElasticBlockStoreVolumeSource) -> list[Cause]:
    return needs(path, source, "volumeID") + _byte(f"{path}.partition", source.partition)


def _items(path: str, items: Iterable[core.KeyToPath]) -> list[Cause]:
    return [cause for index, item in enumerate(items) for cause in _item(f"{path}[{index}]", item)]


def _item(path: str, item: core.KeyToPath) -> list[Cause]:
    errors = [*needs(path, item, "key", "path"), *paths.local_non_reserved(f"{path}.path", item.path)]
    return errors + (paths.mode(f"{path}.mode", item.mode) if item.HasField("mode") else [])


def _default_mode(path: str, source: Any) -> list[Cause]:
    return paths.mode(f"{path}.defaultMode", source.defaultMode) if source.HasField("defaultMode") else []


def _secret(path: str, source: core.SecretVolumeSource) -> list[Cause]:
    errors = needs(path, source, "secretName") + _default_mode(path, source)
    return errors + _items(f"{path}.items", source.items)


def _config_map(path: str, source: core.ConfigMapVolumeSource) -> list[Cause]:
    errors = needs(path, source.localObjectReference, "name") + _default_mode(path, source)
    return errors + _items(f"{path}.items", source.items)


def nfs(path: str, source: core.NFSVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "server", "path")
    if not source.path.startswith("/"):
        yield field.invalid(f"{path}.path", source.path, "must be an absolute path")


def _iqn_problem(text: str) -> str:
    """Return the problem of the name of a target or an initiator, or ""."""
    for prefix, pattern in (("iqn", _IQN), ("eui", _EUI), ("naa", _NAA)):
        if text.startswith(prefix):
            return "" if pattern.fullmatch(text) else "must be valid format"
    return "must be valid format starting with iqn, eui, or naa"


def iscsi(
    path: str, source: core.ISCSIVolumeSource | core.ISCSIPersistentVolumeSource, volume: str | None = None
) -> Iterator[Cause]:
    """Check an iSCSI volume of a pod, or of the PersistentVolume `volume`, whose paths differ a little."""
    persistent = volume is not None
    yield from needs(path, source, "targetPortal")
    if persistent and _too_long(source, volume or ""):
        yield field.invalid(f"{path}.targetportal", source.targetPortal, _INITIATOR_PROBLEM)
    if not source.iqn:
        yield field.required(f"{path}.iqn")
    elif problem := _iqn_problem(source.iqn):
        problem = "must be valid format" if persistent else problem
        yield field.invalid(f"{path}.iqn", source.iqn, problem)
    yield from _byte(f"{path}.lun", source.lun)
    if (source.chapAuthDiscovery or source.chapAuthSession) and not source.HasField("secretRef"):
        yield field.required(f"{path}.secretRef")
    if persistent and source.HasField("secretRef"):
        yield from needs(f"{path}.secretRef", source.secretRef, "name")
    if source.HasField("initiatorName") and (problem := _iqn_problem(source.initiatorName)):
        problem = "must be valid format" if persistent else problem
        yield field.invalid(f"{path}.initiatorname", source.initiatorName, problem)


def _too_long(source: core.ISCSIVolumeSource | core.ISCSIPersistentVolumeSource, volume: str) -> bool:
    return (
        source.HasField("initiatorName")
        and len(f"{volume}:{source.targetPortal}".encode()) > _INITIATOR_LENGTH_MAX
    )


def _flocker(path: str, source: core.FlockerVolumeSource) -> Iterator[Cause]:
    if not source.datasetName and not source.datasetUUID:
        yield field.required(path, "one of datasetName and datasetUUID is required")
    if source.datasetName and source.datasetUUID:
        problem = "datasetName and datasetUUID can not be specified simultaneously"
        yield field.invalid(path, "resource", problem)
    if "/" in source.datasetName:
        yield field.invalid(f"{path}.datasetName", source.datasetName, "must not contain '/'")


def _quobyte(path: str, source: core.QuobyteVolumeSource) -> list[Cause]:
    errors: list[Cause] = []
    problem = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        errors.append(field.required(f"{path}.registry", problem))
    elif len(source.tenant.encode()) > _TENANT_LENGTH_MAX:
        limit = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(field.required(f"{path}.tenant", limit))
    else:
        errors += [
            field.invalid(f"{path}.registry", source.registry, problem)
            for pair in source.registry.split(",")
            if not _HOST_PORT.fullmatch(pair)
        ]
    return errors + needs(path, source, "volume")


def _cinder(path: str, source: core.CinderVolumeSource) -> list[Cause]:
    errors = needs(path, source, "volumeID")
    return errors + (
        needs(f"{path}.secretRef", source.secretRef, "name") if source.HasField("secretRef") else []
    )


def _flex(path: str, source: core.FlexVolumeSource | core.FlexPersistentVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "driver")
    for key in sorted(source.options):
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            problem = "kubernetes.io and k8s.io namespaces are reserved"
            yield field.invalid(f"{path}.options[{key}]", key, problem)


def _azure_disk(path: str, source: core.AzureDiskVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "diskName", "diskURI")
    if source.HasField("cachingMode") and source.cachingMode not in _CACHING:
        yield field.not_supported(f"{path}.cachingMode", source.cachingMode, _CACHING)
    if source.HasField("kind") and source.kind not in _DISK_KINDS:
        yield field.not_supported(f"{path}.kind", source.kind, _DISK_KINDS)
    if source.HasField("kind"):
        prefix, shape = _DISK_URIS[source.kind == "Managed"]
        if not source.diskURI.startswith(prefix):
            yield field.not_supported(f"{path}.diskURI", source.diskURI, (shape,))


def storage_os(path: str, source: Any, *secret: str) -> list[Cause]:
    """`secret` are the parts that its reference to a secret needs."""
    errors = needs(path, source, "volumeName")
    for name in ("volumeName", "volumeNamespace"):
        if value := getattr(source, name):
            errors += device_names.label(f"{path}.{name}", value)
    return errors + (
        needs(f"{path}.secretRef", source.secretRef, *secret) if source.HasField("secretRef") else []
    )


def _claim(path: str, source: core.PersistentVolumeClaimVolumeSource) -> list[Cause]:
    return needs(path, source, "claimName")


def downward_file(path: str, file: core.DownwardAPIVolumeFile) -> list[Cause]:
    """Check a file that shows a field or resource of the pod."""
    errors = [*needs(path, file, "path"), *paths.local_non_reserved(f"{path}.path", file.path)]
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


def _downward(path: str, source: core.DownwardAPIVolumeSource) -> Iterator[Cause]:
    yield from _default_mode(path, source)
    for file in source.items:
        # Upstream does not say which.
        yield from downward_file(path, file)


def _fibre_channel(path: str, source: core.FCVolumeSource) -> Iterator[Cause]:
    at = f"{path}.targetWWNs"
    if not source.targetWWNs and not source.wwids:
        yield field.required(at, "must specify either targetWWNs or wwids, but not both")
    if source.targetWWNs and source.wwids:
        problem = "targetWWNs and wwids can not be specified simultaneously"
        yield field.invalid(at, list(source.targetWWNs), problem)
    if source.targetWWNs:
        if not source.HasField("lun"):
            yield field.required(f"{path}.lun", "lun is required if targetWWNs is specified")
        else:
            yield from _byte(f"{path}.lun", source.lun)


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
                errors += needs(f"{at}.{name}", projection.localObjectReference, "name")
                for number, item in enumerate(projection.items):
                    errors += _item(f"{at}.{name}.items[{number}]", item)
                    errors += once(item.path, projection.localObjectReference.name)
        for file in each.downwardAPI.items:
            errors += downward_file(f"{at}.downwardAPI", file)
            errors += once(file.path, file.path)
        if each.HasField("serviceAccountToken"):
            errors += _token(path, f"{at}.serviceAccountToken", each.serviceAccountToken)
        if each.HasField("clusterTrustBundle"):
            errors += _trust_bundle(f"{at}.clusterTrustBundle", each.clusterTrustBundle)
            errors += once(each.clusterTrustBundle.path, each.clusterTrustBundle.path)
        if len(each.ListFields()) > 1:
            errors.append(field.forbidden(at, f"{MORE} per source"))
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
    return [*errors, *paths.local_non_reserved(f"{path}.path", token.path)]


def _trust_bundle(path: str, source: core.ClusterTrustBundleProjection) -> list[Cause]:
    """By name, or all of a signer."""
    named, signed = source.HasField("name"), source.HasField("signerName")
    errors: list[Cause] = []
    if named and signed:
        problem = "only one of name and signerName may be used"
        errors.append(field.invalid(path, go_dump.dump(source), problem))
    elif named:
        if not source.name:
            errors.append(field.required(f"{path}.name", "must be a valid object name"))
        if source.HasField("labelSelector"):
            problem = "labelSelector must be unset if name is specified"
            errors.append(field.invalid(f"{path}.labelSelector", go_dump.dump(source.labelSelector), problem))
    elif signed:
        if not source.signerName:
            errors.append(field.required(f"{path}.signerName", "must be a valid signer name"))
        if source.HasField("labelSelector"):
            errors += label_selector(f"{path}.labelSelector", source.labelSelector)
    else:
        errors.append(field.required(path, "either name or signerName must be specified"))
    return [*errors, *needs(path, source, "path"), *paths.local_non_reserved(f"{path}.path", source.path)]


def _csi(path: str, source: core.CSIVolumeSource) -> list[Cause]:
    errors = list(device_names.driver(f"{path}.driver", source.driver))
    if source.HasField("nodePublishSecretRef"):
        name = source.nodePublishSecretRef.name
        if not name:
            return [*errors, field.required(f"{path}.nodePublishSecretRef.name")]
        errors += device_names.subdomain(f"{path}.name", name)
    return errors


def _ephemeral(path: str, source: core.EphemeralVolumeSource) -> list[Cause]:
    at = f"{path}.volumeClaimTemplate"
    return (
        claim_template(at, source.volumeClaimTemplate)
        if source.HasField("volumeClaimTemplate")
        else [field.required(at)]
    )


def _image(path: str, source: core.ImageVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "reference")
    yield from field.choice(f"{path}.pullPolicy", source.pullPolicy, _PULL_POLICIES)


def requirement(*names_: str) -> Callable[[str, Message], Iterable[Cause]]:
    return lambda path, source: needs(path, source, *names_)


# In the order in which upstream looks; a volume with two has the later one forbidden.
SOURCES: dict[str, Callable[[str, Any], Iterable[Cause]]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk,
    "awsElasticBlockStore": _block_store,
    "secret": _secret,
    "nfs": nfs,
    "iscsi": iscsi,
    "glusterfs": requirement("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _claim,
    "rbd": requirement("monitors", "image"),
    "cinder": _cinder,
    "cephfs": requirement("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": _config_map,
    "azureFile": requirement("secretName", "shareName"),
    "vsphereVolume": requirement("volumePath"),
    "photonPersistentDisk": requirement("pdID"),
    "portworxVolume": requirement("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": lambda path, source: storage_os(path, source, "name"),
    "projected": _projected,
    "scaleIO": requirement("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
# How upstream's paths differ from the names of the fields where there is one too many.
_FORBIDDEN_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def volume_source(path: str, source: core.VolumeSource, volume: str = "", pod: str = "") -> Iterator[Cause]:
    """Check that there is exactly one source, and validate it, for the volume and the pod of these names."""
    given = [name for name in SOURCES if source.HasField(name)]
    if not given:
        yield field.required(path, "must specify a volume type")
        return
    yield from SOURCES[given[0]](f"{path}.{given[0]}", getattr(source, given[0]))
    if given[0] == "iscsi" and _too_long(source.iscsi, volume):
        yield field.invalid(f"{path}.name", volume, _INITIATOR_PROBLEM)
    if given[0] == "ephemeral" and pod and volume:
        claim = f"{pod}-{volume}"
        for problem in names.dns_subdomain(claim):
            yield field.invalid(f"{path}.name", volume, f"PVC name {go_quote(claim)}: {problem}")
    for name in given[1:]:
        yield field.forbidden(f"{path}.{_FORBIDDEN_NAMES.get(name, name)}", MORE)
