"""PersistentVolumeClaimResize: only bound claims of a class that allows it grow (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

_ZERO = Quantity.parse("0")


class PersistentVolumeClaimResize(Plugin):
    """Refuses a larger storage request of a claim that is unbound or whose class does not allow expansion."""

    name = "PersistentVolumeClaimResize"
    requests = ((PERSISTENT_VOLUME_CLAIM, "UPDATE", ""),)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        new, old = request.obj, request.old
        if _size(new) <= _size(old):
            return
        if old.status.phase != "Bound":
            raise request.forbidden("Only bound persistent volume claims can be expanded")
        name = new.spec.storageClassName
        found = await lookup.find(STORAGE_CLASS, "", name) if name else None
        if found is None or not found.message.allowVolumeExpansion:
            raise request.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc"
                " must support resize"
            )


def _size(claim: core.PersistentVolumeClaim) -> Quantity:
    requests = claim.spec.resources.requests
    return Quantity.parse(requests["storage"].string) if "storage" in requests else _ZERO
