"""TaintNodesByCondition: a new node is tainted until the node life cycle controller has seen it ready."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import NODE
from nominee.machinery.scheduling.taints import find_taint

NOT_READY = "node.kubernetes.io/not-ready"


class TaintNodesByCondition(Plugin):
    """Adds the not-ready taint to new nodes; an imported one keeps its taints."""

    name = "TaintNodesByCondition"
    requests = ((NODE, "CREATE", ""),)

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.imported:
            return
        taints = request.obj.spec.taints
        if find_taint(taints, NOT_READY, "NoSchedule") is None:
            taints.add(key=NOT_READY, effect="NoSchedule")
