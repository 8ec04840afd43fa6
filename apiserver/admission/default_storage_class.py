"""DefaultStorageClass: a claim that names no class gets the cluster's default one (kube-apiserver 1.36)."""

from __future__ import annotations

from apiserver.admission.interface import Lookup, Operation, Plugin, Request
from machinery.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, AnyKind
from machinery.api.pb import storage

_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


class DefaultStorageClass(Plugin):
    """Sets the default class of a new claim without a class."""

    name = "DefaultStorageClass"

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return kind is PERSISTENT_VOLUME_CLAIM and operation == "CREATE" and not subresource

    async def admit(self, request: Request, lookup: Lookup) -> None:
        claim = request.obj
        if claim.spec.HasField("storageClassName") or _CLASS in claim.metadata.annotations:
            return
        classes = [found.message for found in await lookup.known(STORAGE_CLASS)]
        defaults = [found for found in classes if _is_default(found)]
        if defaults:
            claim.spec.storageClassName = min(defaults, key=_newest_first).metadata.name


def _is_default(found: storage.StorageClass) -> bool:
    annotations = found.metadata.annotations
    return any(annotations[name] == "true" for name in _DEFAULT if name in annotations)


def _newest_first(found: storage.StorageClass) -> tuple[int, str]:
    return -found.metadata.creationTimestamp.seconds, found.metadata.name
