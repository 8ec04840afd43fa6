"""The volume claims that a pod uses. Pure.

Source: kube-controller-manager 1.36, pkg/controller/volume/pvcprotection.
"""

from __future__ import annotations

from nominee.machinery.api.pb import core


def claims_of(pod: core.Pod) -> list[str]:
    """Return the names of the claims that a pod uses, with those of its ephemeral volumes."""
    found = []
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if source.HasField("persistentVolumeClaim"):
            found.append(source.persistentVolumeClaim.claimName)
        elif source.HasField("ephemeral"):
            found.append(f"{pod.metadata.name}-{volume.name}")
    return found
