"""Where a PersistentVolume's data lies, a function a source (kube-apiserver 1.36, PersistentVolumeSpec).

They are a pod's sources but for what names objects in namespaces, since a volume is in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods.volumes.sources import (
    MORE,
    SOURCES,
    iscsi,
    needs,
    requirement,
    storage_os,
)
from nominee.apiserver.validation.values import device_names, paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _glusterfs(path: str, source: core.GlusterfsPersistentVolumeSource) -> list[Cause]:
    errors = needs(path, source, "endpoints", "path")
    if source.HasField("endpointsNamespace"):
        at, namespace = f"{path}.endpointsNamespace", source.endpointsNamespace
        if not namespace:
            problem = "if the endpointnamespace is set, it must be a valid namespace name"
            return [*errors, field.invalid(at, namespace, problem)]
        errors += field.check(at, namespace, names.dns_label)
    return errors


def _cinder(path: str, source: core.CinderPersistentVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "volumeID")
    if source.HasField("secretRef"):
        yield from needs(f"{path}.secretRef", source.secretRef, "name", "namespace")


def _azure_file(path: str, source: core.AzureFilePersistentVolumeSource) -> Iterator[Cause]:
    yield from needs(path, source, "secretName", "shareName")
    if source.HasField("secretNamespace") and not source.secretNamespace:
        yield field.required(f"{path}.secretNamespace")


def _local(path: str, source: core.LocalVolumeSource) -> list[Cause]:
    if not source.path:
        return [field.required(f"{path}.path")]
    return paths.no_backsteps(f"{path}.path", source.path)


def _csi(path: str, source: core.CSIPersistentVolumeSource) -> list[Cause]:
    errors = [*device_names.driver(f"{path}.driver", source.driver), *needs(path, source, "volumeHandle")]
    for name in _SECRETS:
        if source.HasField(name):
            errors += _secret_reference(f"{path}.{name}", getattr(source, name))
    return errors


def _secret_reference(path: str, reference: core.SecretReference) -> list[Cause]:
    if reference.name:
        errors = device_names.subdomain(f"{path}.name", reference.name)
    else:
        errors = [field.required(f"{path}.name")]
    if not reference.namespace:
        return [*errors, field.required(f"{path}.namespace")]
    return errors + device_names.label(f"{path}.namespace", reference.namespace)


# In the order in which upstream looks.
_OWN: dict[str, Callable[[str, Any], Iterable[Cause]] | None] = {
    "hostPath": None,
    "gcePersistentDisk": None,
    "awsElasticBlockStore": None,
    "glusterfs": _glusterfs,
    "flocker": None,
    "nfs": None,
    "rbd": requirement("monitors", "image"),
    "quobyte": None,
    "cephfs": requirement("monitors"),
    "iscsi": None,
    "cinder": _cinder,
    "fc": None,
    "flexVolume": None,
    "azureFile": _azure_file,
    "vsphereVolume": None,
    "photonPersistentDisk": None,
    "portworxVolume": None,
    "azureDisk": None,
    "scaleIO": None,
    "local": _local,
    "storageos": None,
    "csi": _csi,
}


def persistent_source(spec: core.PersistentVolumeSpec, name: str) -> Iterator[Cause]:
    """Check that there is exactly one source, and validate it; `name` is the volume's."""
    source = spec.persistentVolumeSource
    given = [each for each in _OWN if source.HasField(each)]
    if not given:
        yield field.required("spec", "must specify a volume type")
        return
    first = given[0]
    path, value = f"spec.{first}", getattr(source, first)
    if first == "iscsi":
        yield from iscsi(path, value, volume=name)
    elif first == "storageos":
        yield from storage_os(path, value, "name", "namespace")
    else:
        yield from (_OWN[first] or SOURCES[first])(path, value)
    if first == "local" and not spec.HasField("nodeAffinity"):
        yield field.required("spec.nodeAffinity", "Local volume requires node affinity")
    for each in given[1:]:
        yield field.forbidden(f"spec.{'cephFS' if each == 'cephfs' else each}", MORE)
