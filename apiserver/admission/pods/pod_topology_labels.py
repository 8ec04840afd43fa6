"""PodTopologyLabels: a bound pod gets the node's zone and region labels (KEP-4742; beta since 1.35)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.machinery.api.kinds import NODE, POD, AnyKind
from nominee.machinery.features.gates import Gates, Version

SINCE = Version(1, 35)
"""The first version that enables it by default."""
LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """Copies the node's topology labels to the Binding, which sets them on the pod.

    They overwrite the labels of the Binding and of the pod.
    """

    name = "PodTopologyLabels"

    def __init__(self, gates: Gates) -> None:
        self._enabled = gates.version >= SINCE

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return self._enabled and kind is POD and operation == "CREATE" and subresource in ("", "binding")

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        obj = request.obj
        if request.subresource:
            name = obj.target.name if obj.target.kind == "Node" else ""
        else:
            name = obj.spec.nodeName
        node = await lookup.find(NODE, "", name) if name else None
        if node is None:
            return
        labels = node.labels
        for label in LABELS:
            if label in labels:
                obj.metadata.labels[label] = labels[label]
