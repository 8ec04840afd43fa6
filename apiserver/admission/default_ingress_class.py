"""DefaultIngressClass: an Ingress that names no class gets the cluster's default (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.kinds.networking.ingresses import CLASS_ANNOTATION
from nominee.machinery.api.default_class import DEFAULT_INGRESS_CLASS, default_class
from nominee.machinery.api.kinds import INGRESS, INGRESS_CLASS
from nominee.machinery.api.pb import networking


class DefaultIngressClass(Plugin):
    """Sets the default class of a new Ingress that has neither a class nor the annotation of one."""

    name = "DefaultIngressClass"
    requests = ((INGRESS, "CREATE", ""),)

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        ingress: networking.Ingress = request.obj
        if ingress.spec.HasField("ingressClassName") or CLASS_ANNOTATION in ingress.metadata.annotations:
            return
        classes: list[networking.IngressClass] = [
            found.message for found in await lookup.known(INGRESS_CLASS)
        ]
        default = default_class(classes, DEFAULT_INGRESS_CLASS)
        if default is not None:
            ingress.spec.ingressClassName = default.metadata.name
