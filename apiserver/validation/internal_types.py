"""Where the API server's internal Go types have other fields than the API's, or another order of them.

Errors that show an internal structure show these. Source: kubernetes 1.36, pkg/apis/core/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.wire.values.scalars import Json

_CORE = "k8s.io.api.core.v1."

_ORDER: Mapping[str, tuple[str, ...]] = {
    _CORE + "PodSpec": (
        "Volumes", "InitContainers", "Containers", "EphemeralContainers", "RestartPolicy",
        "TerminationGracePeriodSeconds", "ActiveDeadlineSeconds", "DNSPolicy", "NodeSelector",
        "ServiceAccountName", "AutomountServiceAccountToken", "NodeName", "SecurityContext",
        "ImagePullSecrets", "Hostname", "Subdomain", "SetHostnameAsFQDN", "Affinity", "SchedulerName",
        "Tolerations", "HostAliases", "PriorityClassName", "Priority", "PreemptionPolicy", "DNSConfig",
        "ReadinessGates", "RuntimeClassName", "Overhead", "EnableServiceLinks",
        "TopologySpreadConstraints", "OS", "SchedulingGates", "ResourceClaims", "Resources",
        "HostnameOverride", "SchedulingGroup",
    ),
    _CORE + "PodSecurityContext": (
        "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot", "SupplementalGroups",
        "SupplementalGroupsPolicy", "FSGroup", "FSGroupChangePolicy", "Sysctls", "SeccompProfile",
        "AppArmorProfile", "SELinuxChangePolicy",
    ),
    _CORE + "VolumeSource": (
        "HostPath", "EmptyDir", "GCEPersistentDisk", "AWSElasticBlockStore", "GitRepo", "Secret", "NFS",
        "ISCSI", "Glusterfs", "PersistentVolumeClaim", "RBD", "Quobyte", "FlexVolume", "Cinder", "CephFS",
        "Flocker", "DownwardAPI", "FC", "AzureFile", "ConfigMap", "VsphereVolume", "AzureDisk",
        "PhotonPersistentDisk", "Projected", "PortworxVolume", "ScaleIO", "StorageOS", "CSI", "Ephemeral",
        "Image",
    ),
    _CORE + "PersistentVolumeSource": (
        "GCEPersistentDisk", "AWSElasticBlockStore", "HostPath", "Glusterfs", "NFS", "RBD", "Quobyte",
        "ISCSI", "FlexVolume", "Cinder", "CephFS", "FC", "Flocker", "AzureFile", "VsphereVolume",
        "AzureDisk", "PhotonPersistentDisk", "PortworxVolume", "ScaleIO", "Local", "StorageOS", "CSI",
    ),
}  # fmt: skip
"""By message, its fields in the order of the internal type, where that differs."""

_OF_POD = ("HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers")
"""Fields of a pod's spec that the internal type has first in the security context."""
_POD_ONLY = ("DeprecatedServiceAccount",)
"""Fields of a pod's spec that the internal type does not have."""

NOT_POINTERS = frozenset({(_CORE + "ServiceAccountTokenProjection", "expirationSeconds")})
"""(message, field): a pointer in the API's type only."""


def in_order(message: str, fields: dict[str, Json], empty_security_context: Json) -> dict[str, Json]:
    """Return the fields of a message, by their Go names, as its internal type has them.

    `empty_security_context` is shown for a pod that has none: conversion always sets one.
    """
    order = _ORDER.get(message)
    if order is None:
        return fields
    if message == _CORE + "PodSpec":
        host = {name: fields.pop(name) for name in _OF_POD}
        for name in _POD_ONLY:
            del fields[name]
        fields["SecurityContext"] = host | (fields["SecurityContext"] or empty_security_context)
    return {name: fields[name] for name in order}
