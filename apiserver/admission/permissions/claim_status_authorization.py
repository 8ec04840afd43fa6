"""Authorization of the parts of a ResourceClaim's status (DRAResourceClaimGranularStatusAuthorization).

Beside resourceclaims/status a client needs `resourceclaims/binding` for the allocation and the reservations,
and `resourceclaims/driver` with the name of each driver whose devices' status it changes: with the verb
`associated-node:update` for a service account on the node of the claim, `arbitrary-node:update` for others
(or `...:patch`). Upstream's strategy checks this; strategies here do not know the user. It cannot be
disabled.

Source: kube-apiserver 1.36, registry/resource/authorization.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.apiserver.access.authorizer import Authorizer, forbidden
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.kinds.resource.resource_claims import drop_deallocated
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.apiserver.validation import field, names
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, devices

GATE: Final = "DRAResourceClaimGranularStatusAuthorization"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNT_PARTS: Final = 2
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"


@dataclass(frozen=True, slots=True)
class _Write:
    """A change of a claim's status, and the request that makes it."""

    user: User
    asked: Attributes
    new: devices.ResourceClaimStatus
    old: devices.ResourceClaimStatus


class ClaimStatusAuthorization(Plugin):
    """Requires the permissions for the parts of a claim's status that a write changes."""

    name = "ResourceClaimStatusAuthorization"
    requests = ((kinds.RESOURCE_CLAIM, "UPDATE", "status"),)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        asked = request.origin.attributes
        if asked is None:
            # The server itself writes.
            return
        write = _Write(request.origin.user, asked, request.obj.status, request.old.status)
        causes = [*self._binding(write), *self._drivers(write)]
        if causes:
            raise errors.invalid(request.kind, request.name, causes)

    def _binding(self, write: _Write) -> list[Cause]:
        """Return the cluster-wide permission that a change of allocation or reservations lacks."""
        new, old, asked = write.new, write.old, write.asked
        same = new.HasField("allocation") == old.HasField("allocation") and new.allocation == old.allocation
        if same and list(new.reservedFor) == list(old.reservedFor):
            return []
        wanted = asked._replace(subresource="binding", namespace="", name="")
        problem = self._refusal(write.user, wanted)
        if not problem:
            return []
        needed = f'resource="resourceclaims/binding", verb="{asked.verb}"'
        text = f"changing status.allocation or status.reservedFor requires {needed} permission: {problem}"
        return [field.forbidden("status", text)]

    def _drivers(self, write: _Write) -> list[Cause]:
        """Return the permissions that a change of devices' statuses lacks, for each driver."""
        asked = write.asked
        verbs = [f"arbitrary-node:{asked.verb}"]
        node = node_of(write.new.allocation)
        if node and node == _node_of_account(write.user):
            verbs.insert(0, f"associated-node:{asked.verb}")
        causes = []
        for driver in sorted(changed_drivers(write.new, write.old)):
            wanted = [asked._replace(verb=verb, subresource="driver", name=driver) for verb in verbs]
            problems = [self._refusal(write.user, each) for each in wanted]
            if all(problems):
                needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]"'
                text = f"changing status.devices requires {needed} permission: {problems[0]}"
                causes.append(field.forbidden("status.devices", text))
        return causes

    def _refusal(self, user: User, wanted: Attributes) -> str:
        decision = self._authorizer.decide(user, wanted)
        return "" if decision.allowed else forbidden(user, wanted, decision.reason).message


def changed_drivers(new: devices.ResourceClaimStatus, old: devices.ResourceClaimStatus) -> set[str]:
    """Return the drivers with devices whose status was added, removed or changed.

    Entries that the server itself drops at a deallocation do not count.
    """
    dropped = devices.ResourceClaimStatus(allocation=new.allocation, devices=old.devices)
    drop_deallocated(dropped, old)
    left = {_key(device): device for device in dropped.devices}
    found = {device.driver for device in new.devices if left.pop(_key(device), None) != device}
    return found | {device.driver for device in left.values()}


def _key(device: devices.AllocatedDeviceStatus) -> tuple[str, str, str, str]:
    return device.driver, device.pool, device.device, device.shareID


def node_of(allocation: devices.AllocationResult) -> str:
    """Return the only node of an allocation, or "" when it allows several."""
    terms = allocation.nodeSelector.nodeSelectorTerms
    if len(terms) != 1 or terms[0].matchExpressions or len(terms[0].matchFields) != 1:
        return ""
    wanted: core.NodeSelectorRequirement = terms[0].matchFields[0]
    if (wanted.key, wanted.operator) != ("metadata.name", "In") or len(wanted.values) != 1:
        return ""
    return str(wanted.values[0])


def _node_of_account(user: User) -> str:
    """Return the node that a service account's token is bound to, or ""."""
    parts = user.name.removeprefix(_ACCOUNT).split(":")
    if not user.name.startswith(_ACCOUNT) or len(parts) != _ACCOUNT_PARTS:
        return ""
    nodes = dict(user.extra).get(_NODE_NAME, ())
    return nodes[0] if len(nodes) == 1 and not names.dns_subdomain(nodes[0]) else ""
