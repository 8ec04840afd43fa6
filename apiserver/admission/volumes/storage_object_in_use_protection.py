"""StorageObjectInUseProtection: a finalizer keeps claims and volumes while they are in use."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM

_FINALIZERS = {
    PERSISTENT_VOLUME_CLAIM: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUME: "kubernetes.io/pv-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Adds the finalizer to new claims and volumes."""

    name = "StorageObjectInUseProtection"
    requests = tuple((kind, "CREATE", "") for kind in _FINALIZERS)

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        finalizer = _FINALIZERS[request.kind]
        finalizers = request.obj.metadata.finalizers
        if finalizer not in finalizers:
            finalizers.append(finalizer)
