"""TaintNodesByCondition: a new node is tainted until the node life cycle controller has seen it ready."""

from __future__ import annotations

from nominee.apiserver.admission.interface import Lookup, Operation, Plugin, Request
from nominee.machinery.api.kinds import NODE, AnyKind
from nominee.machinery.scheduling.taints import find_taint

NOT_READY = "node.kubernetes.io/not-ready"


class TaintNodesByCondition(Plugin):
    """Adds the not-ready taint to new nodes."""

    name = "TaintNodesByCondition"

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return kind is NODE and operation == "CREATE" and not subresource

    async def admit(self, request: Request, lookup: Lookup) -> None:
        taints = request.obj.spec.taints
        if find_taint(taints, NOT_READY, "NoSchedule") is None:
            taints.add(key=NOT_READY, effect="NoSchedule")
