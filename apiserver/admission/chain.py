"""The admission chain: the enabled plugins in upstream's order."""

from __future__ import annotations

from collections.abc import Collection

from nominee.apiserver.admission.default_ingress_class import DefaultIngressClass
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.apiserver.admission.limit_ranger import LimitRanger
from nominee.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from nominee.apiserver.admission.permissions.certificates import CertificateSubjectRestriction
from nominee.apiserver.admission.permissions.device_admin_access import DeviceAdminAccess
from nominee.apiserver.admission.pods.default_toleration_seconds import DefaultTolerationSeconds
from nominee.apiserver.admission.pods.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nominee.apiserver.admission.pods.pod_resize_validator import PodResizeValidator
from nominee.apiserver.admission.pods.pod_topology_labels import PodTopologyLabels
from nominee.apiserver.admission.pods.priority import Priority
from nominee.apiserver.admission.pods.runtime_class import RuntimeClassAdmission
from nominee.apiserver.admission.resource_quota import ResourceQuota
from nominee.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from nominee.apiserver.admission.volumes.claim_resize import PersistentVolumeClaimResize
from nominee.apiserver.admission.volumes.default_storage_class import DefaultStorageClass
from nominee.apiserver.admission.volumes.storage_object_in_use_protection import StorageObjectInUseProtection
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock

NAMES = (
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "NodeDeclaredFeatureValidator",
    "PodResizeValidator",
    "PodTopologyLabels",
    "ResourceQuota",
)
ABSENT = frozenset((
    "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
    "NamespaceAutoProvision", "NamespaceExists",
    "OwnerReferencesPermissionEnforcement", "PodNodeSelector", "PodSecurity", "PodTolerationRestriction",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
))  # fmt: skip
"""Upstream's plugins that do not exist here; disabling one has no effect."""


def plugins(
    gates: Gates, clock: Clock, disabled: Collection[str] = (), others: Collection[Plugin] = ()
) -> list[Plugin]:
    """Return the admission plugins in order, without the disabled ones.

    `others` depend on authorization: they run only when requests are authenticated.

    Raises: ValueError for an unknown plugin name.
    """
    unknown = sorted(set(disabled) - set(NAMES) - ABSENT)
    if unknown:
        raise ValueError(f'admission-control plugin "{unknown[0]}" is unknown')
    found: list[Plugin] = [
        NamespaceLifecycle(),
        LimitRanger(gates),
        *others,
        TaintNodesByCondition(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(),
        RuntimeClassAdmission(),
        CertificateSubjectRestriction(),
        DefaultIngressClass(),
        NodeDeclaredFeatureValidator(gates),
        PodResizeValidator(gates),
        PodTopologyLabels(gates),
        DeviceAdminAccess(),
        ResourceQuota(clock),
    ]
    return [plugin for plugin in found if plugin.name not in disabled]


_Handling = tuple[tuple[Plugin, ...], tuple[Plugin, ...], tuple[Plugin, ...]]
"""The plugins that handle a request; of these, those that mutate; those that validate."""


class Chain:
    """Runs the plugins that handle a request."""

    def __init__(self, found: Collection[Plugin], lookup: Lookup) -> None:
        self._plugins = tuple(found)
        self._lookup = lookup
        self._handling: dict[tuple[AnyKind, Operation, str], _Handling] = {}

    def handling(self, kind: AnyKind, operation: Operation, subresource: str) -> tuple[Plugin, ...]:
        """Return the plugins that handle such requests; empty for most."""
        return self._of((kind, operation, subresource))[0]

    def _of(self, key: tuple[AnyKind, Operation, str]) -> _Handling:
        handling = self._handling.get(key)
        if handling is None:
            found = tuple(plugin for plugin in self._plugins if plugin.handles(*key))
            handling = self._handling[key] = (
                found,
                tuple(plugin for plugin in found if type(plugin).admit is not Plugin.admit),
                tuple(plugin for plugin in found if type(plugin).validate is not Plugin.validate),
            )
        return handling

    async def admit(self, request: AdmissionRequest | None) -> None:
        if request is not None:
            for plugin in self._of((request.kind, request.operation, request.subresource))[1]:
                await plugin.admit(request, self._lookup)

    async def validate(self, request: AdmissionRequest | None) -> None:
        if request is not None:
            for plugin in self._of((request.kind, request.operation, request.subresource))[2]:
                await plugin.validate(request, self._lookup)
