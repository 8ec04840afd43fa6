"""The reclaim policy of a released volume: deletion, failure, or no write. Pure.

Nothing is recycled: a hostPath or NFS volume with the policy Recycle stays Released.
Source: kube-controller-manager 1.36, persistentvolume (reclaimVolume, findDeletablePlugin), and its plugins.
"""

from __future__ import annotations

from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.steps import DeleteVolume, RecordEvent, Step, Update
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core

_EXTERNAL = (
    "csi",
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cinder",
    "gcePersistentDisk",
    "portworxVolume",
    "vsphereVolume",
)
"""Sources whose volumes an external provisioner deletes: CSI drivers, and what has migrated to them."""
_RECYCLABLE = ("hostPath", "nfs")
_DELETABLE_PATH = "/tmp/"


def reclaim(volume: core.PersistentVolume) -> Step | None:
    """Return the next write for a volume that is Released or Failed, None if nothing is to be done."""
    policy = volume.spec.persistentVolumeReclaimPolicy
    sources = {each.name for each, _ in volume.spec.persistentVolumeSource.ListFields()}
    if policy == "Recycle":
        if sources.intersection(_RECYCLABLE):
            return None
        return _failed(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
    if policy != "Delete" or volume.metadata.HasField("deletionTimestamp"):
        return None
    provisioner = volume.metadata.annotations.get(names.PROVISIONED_BY, "")
    if provisioner == names.DELAYED_PROVISIONER:
        return DeleteVolume(volume)
    if provisioner or sources.intersection(_EXTERNAL):
        return None
    problem = _deletion_problem(volume, sources)
    return _failed(volume, "VolumeFailedDelete", problem) if problem else DeleteVolume(volume)


def _deletion_problem(volume: core.PersistentVolume, sources: set[str]) -> str:
    """Return why the controller cannot delete a volume's data itself, "" if it can."""
    if "hostPath" in sources:
        path = volume.spec.persistentVolumeSource.hostPath.path
        if path.partition(_DELETABLE_PATH)[2]:
            return ""
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    reason = "no deletable volume plugin matched" if "nfs" in sources else "no volume plugin matched"
    return f'error getting deleter volume plugin for volume "{volume.metadata.name}": {reason}'


def _failed(volume: core.PersistentVolume, reason: str, problem: str) -> Step | None:
    """Return the write that reports a volume as failed, with its event; a failed one keeps its message."""
    if volume.status.phase == "Failed":
        return None
    new = copy_of(volume)
    new.status.phase = "Failed"
    new.status.message = problem
    return Update(new, "status", RecordEvent(new, "Warning", reason, problem))
