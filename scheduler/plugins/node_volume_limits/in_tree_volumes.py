"""Translate volumes of the old in-tree drivers to volumes of the CSI drivers that replaced them.

Only what counting needs: the driver's name and a handle that is the same for the same disk.
Source: csi-translation-lib 1.36; KEP-625 "In-tree storage plugin to CSI driver migration".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nominee.machinery.api.pb import core, storage

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

CSI_DRIVERS: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
# Migrated on every node; of the others a node's CSINode must say so.
_ALWAYS_MIGRATED: Final = frozenset(
    {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/cinder", "kubernetes.io/azure-disk"}
)
_SOURCES: Final[Mapping[str, str]] = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "cinder": "kubernetes.io/cinder",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
    "portworxVolume": "kubernetes.io/portworx-volume",
}
_UNSPECIFIED = "UNSPECIFIED"
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True)
class InTreeVolume:
    """An in-tree volume: its in-tree driver, and its handle with the CSI driver."""

    plugin: str
    handle: str

    @property
    def driver(self) -> str:
        return CSI_DRIVERS[self.plugin]


def translate(source: Any, labels: Mapping[str, str] | None = None, name: str = "") -> InTreeVolume | None:
    """Return the volume of a VolumeSource or PersistentVolumeSource; None if it has no in-tree driver.

    `labels` are the persistent volume's, None for an inline volume; `name` is that of either.
    """
    for field, plugin in _SOURCES.items():
        if source.HasField(field):
            return InTreeVolume(plugin, _HANDLES[field](getattr(source, field), labels, name))
    return None


def is_migrated(plugin: str, csi_node: storage.CSINode | None) -> bool:
    """Return whether the plugin's volumes are the CSI driver's on that node; without a CSINode none is."""
    if csi_node is None:
        return False
    if plugin in _ALWAYS_MIGRATED:
        return True
    return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def _aws(source: core.AWSElasticBlockStoreVolumeSource, labels: Mapping[str, str] | None, name: str) -> str:
    """Return the handle: `aws://zone/vol-1` and `vol-1` are the same."""
    volume = source.volumeID
    return volume.rsplit("/", 1)[-1] if volume.startswith("aws://") else volume


def _gce(source: core.GCEPersistentDiskVolumeSource, labels: Mapping[str, str] | None, name: str) -> str:
    zones = []
    for key in _ZONES:
        if labels and labels.get(key):
            zones = labels[key].split("__")
            break
    if len(zones) > 1:
        region = zones[0].rsplit("-", 1)[0]
        return f"projects/{_UNSPECIFIED}/regions/{region}/disks/{source.pdName}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] if zones else _UNSPECIFIED}/disks/{source.pdName}"


def _azure_file(source: Any, labels: Mapping[str, str] | None, name: str) -> str:
    account = source.secretName.removeprefix("azure-storage-account-").removesuffix("-secret")
    return f"#{account}#{source.shareName}#{name}#{getattr(source, 'secretNamespace', '')}"


_Handle = Callable[[Any, Mapping[str, str] | None, str], str]
_HANDLES: Final[Mapping[str, _Handle]] = {
    "awsElasticBlockStore": _aws,
    "gcePersistentDisk": _gce,
    "cinder": lambda source, labels, name: str(source.volumeID),
    "azureDisk": lambda source, labels, name: str(source.diskURI),
    "azureFile": _azure_file,
    "vsphereVolume": lambda source, labels, name: str(source.volumePath),
    "portworxVolume": lambda source, labels, name: str(source.volumeID),
}
