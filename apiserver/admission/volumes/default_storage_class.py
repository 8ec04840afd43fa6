"""DefaultStorageClass: a claim that names no class gets the cluster's default one (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.default_class import DEFAULT_STORAGE_CLASS, default_class
from nominee.machinery.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from nominee.machinery.api.pb import storage
from nominee.machinery.scheduling.volume_matching import has_class


class DefaultStorageClass(Plugin):
    """Sets the default class of a new claim without a class."""

    name = "DefaultStorageClass"
    requests = ((PERSISTENT_VOLUME_CLAIM, "CREATE", ""),)

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        claim = request.obj
        if has_class(claim):
            return
        classes: list[storage.StorageClass] = [found.message for found in await lookup.known(STORAGE_CLASS)]
        default = default_class(classes, DEFAULT_STORAGE_CLASS)
        if default is not None:
            claim.spec.storageClassName = default.metadata.name
