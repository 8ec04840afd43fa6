"""Admin access to devices: only in namespaces whose label allows it (DRAAdminAccess).

Upstream's strategies of resource claims and templates check this. Strategies here see no other object, so a
plugin does; it cannot be disabled.

Source: kube-apiserver 1.36, registry/resource.
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.validation import field
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import devices

NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"
_TEXT = f"admin access to devices requires the `{NAMESPACE_LABEL}: true` label on the containing namespace"


class DeviceAdminAccess(Plugin):
    """Refuses admin access in namespaces without the label."""

    name = "DeviceAdminAccess"
    requests = (
        (kinds.RESOURCE_CLAIM, "CREATE", ""),
        (kinds.RESOURCE_CLAIM_TEMPLATE, "CREATE", ""),
        (kinds.RESOURCE_CLAIM, "UPDATE", "status"),
    )

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        path = _asked_at(request)
        if not path:
            return
        found = await lookup.find(kinds.NAMESPACE, "", request.namespace)
        if found is None or found.message.metadata.labels.get(NAMESPACE_LABEL) != "true":
            raise errors.invalid(request.kind, request.name, [field.forbidden(path, _TEXT)])


def _asked_at(request: AdmissionRequest) -> str:
    """Return the path of the first field that newly requests admin access, or ""."""
    if request.subresource:
        if _granted(request.old):
            return ""
        found = _granted(request.obj)
        return f"status.allocation.devices.results[{found[0]}].adminAccess" if found else ""
    is_template = request.kind is kinds.RESOURCE_CLAIM_TEMPLATE
    spec: devices.ResourceClaimSpec = request.obj.spec.spec if is_template else request.obj.spec
    for index, asked in enumerate(spec.devices.requests):
        if asked.exactly.adminAccess:
            return f"spec.devices.requests[{index}].adminAccess"
    return ""


def _granted(claim: devices.ResourceClaim) -> Sequence[int]:
    results = claim.status.allocation.devices.results
    return [index for index, result in enumerate(results) if result.adminAccess]
