"""The type that a body claims to have, and the scheme's error when another type is required.

Source: apimachinery 1.36, runtime/scheme.go, runtime/serializer/json, conversion/converter.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nominee.apiserver.schema.go_errors import unmarshal_problem
from nominee.machinery.api import kinds
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import DecodeError, json_type

_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_REMOVED = """
apps/v1beta1 apps/v1 ControllerRevision Deployment StatefulSet
apps/v1beta2 apps/v1 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
batch/v1beta1 batch/v1 CronJob
certificates.k8s.io/v1beta1 certificates.k8s.io/v1 CertificateSigningRequest
coordination.k8s.io/v1beta1 coordination.k8s.io/v1 Lease
discovery.k8s.io/v1beta1 discovery.k8s.io/v1 EndpointSlice
events.k8s.io/v1beta1 events.k8s.io/v1 Event
extensions/v1beta1 apps/v1 DaemonSet Deployment ReplicaSet
extensions/v1beta1 networking.k8s.io/v1 Ingress NetworkPolicy
flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1 FlowSchema PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta2 flowcontrol.apiserver.k8s.io/v1 FlowSchema PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta3 flowcontrol.apiserver.k8s.io/v1 FlowSchema PriorityLevelConfiguration
networking.k8s.io/v1beta1 networking.k8s.io/v1 IPAddress Ingress IngressClass ServiceCIDR
node.k8s.io/v1alpha1 node.k8s.io/v1 RuntimeClass
node.k8s.io/v1beta1 node.k8s.io/v1 RuntimeClass
policy/v1beta1 policy/v1 PodDisruptionBudget
rbac.authorization.k8s.io/v1alpha1 rbac.authorization.k8s.io/v1 ClusterRole ClusterRoleBinding
rbac.authorization.k8s.io/v1alpha1 rbac.authorization.k8s.io/v1 Role RoleBinding
rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1 ClusterRole ClusterRoleBinding
rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1 Role RoleBinding
resource.k8s.io/v1beta1 resource.k8s.io/v1 DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
resource.k8s.io/v1beta2 resource.k8s.io/v1 DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
scheduling.k8s.io/v1alpha1 scheduling.k8s.io/v1 PriorityClass
scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 PriorityClass
storage.k8s.io/v1alpha1 storage.k8s.io/v1 CSIStorageCapacity VolumeAttachment
storage.k8s.io/v1beta1 storage.k8s.io/v1 CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
storage.k8s.io/v1beta1 storage.k8s.io/v1 VolumeAttributesClass
"""
_SERVED_VERSION: Final = {
    (version, kind): served
    for version, served, *listed in map(str.split, _REMOVED.strip().splitlines())
    for kind in listed
}
"""The served version of a kind in a version that upstream's scheme has, and that is not served here."""


def type_problem(document: Mapping[str, Any]) -> str:
    """Return the problem of an apiVersion or kind that is no string, or ""."""
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            found = json_type(value)
            problem = f"json: cannot unmarshal {found} into Go struct field .{key} of type string"
            return f"json parse error: {problem}"
    return ""


def is_other_version(api_version: str, kind: str, wanted_version: str, wanted_kind: str) -> bool:
    """Report whether these are two versions of one stored kind, which upstream converts to each other."""
    given = kinds.by_kind(_SERVED_VERSION.get((api_version, kind), api_version), kind)
    wanted = kinds.by_kind(wanted_version, wanted_kind)
    if given is None or wanted is None or api_version == wanted_version:
        return False
    return kinds.STORED_AS.get(given, given) is kinds.STORED_AS.get(wanted, wanted)


def unreadable(
    document: Mapping[str, Any], api_version: str, kind: str, wanted_version: str, wanted_kind: str
) -> str:
    """Return the problem of a document of another type: not registered, not decoded, or not converted."""
    given = kinds.by_kind(api_version, kind)
    if given is not None:
        try:
            codec.from_json(given.message, document)
        except DecodeError as error:
            return unmarshal_problem(given.message, document, error)
    return unconvertible(api_version, kind, wanted_version, wanted_kind)


def unconvertible(api_version: str, kind: str, wanted_version: str, wanted_kind: str) -> str:
    """Return the problem of an object of another type: not registered, or not converted."""
    if not (_is_registered(api_version, kind) or _is_registered(api_version, kind.removesuffix("List"))):
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    version = api_version.rpartition("/")[2]
    # The Go package of the internal type: "core", "apps", "rbac".
    package = wanted_version.rpartition("/")[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({package}.{wanted_kind}): unknown conversion"


def _is_registered(api_version: str, kind: str) -> bool:
    return (api_version, kind) in _SERVED_VERSION or kinds.by_kind(api_version, kind) is not None
