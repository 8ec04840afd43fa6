"""StorageObjectInUseProtection: a finalizer keeps claims and volumes while they are in use."""

from __future__ import annotations

from nominee.apiserver.admission.interface import Lookup, Operation, Plugin, Request
from nominee.machinery.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, AnyKind

_FINALIZERS = {
    PERSISTENT_VOLUME_CLAIM: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUME: "kubernetes.io/pv-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Adds the finalizer to new claims and volumes."""

    name = "StorageObjectInUseProtection"

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return kind in _FINALIZERS and operation == "CREATE" and not subresource

    async def admit(self, request: Request, lookup: Lookup) -> None:
        finalizer = _FINALIZERS[request.kind]
        finalizers = request.obj.metadata.finalizers
        if finalizer not in finalizers:
            finalizers.append(finalizer)
