"""A node that is not there: what it would have, with the pods and devices that come with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaler.planning.dynamic_resources import Claim, Slice
from autoscaler.planning.sanitized_devices import sanitized_claims, sanitized_slices
from machinery.api.pb import core
from scheduler.framework.types import NodeInfo, PodInfo


class TemplateNode(NodeInfo):
    """`slices` are its devices, `claims` those that its pods have of them for themselves."""

    __slots__ = ("claims", "slices")

    def __init__(self, node: core.Node, slices: Sequence[Slice] = ()) -> None:
        super().__init__(node.metadata.name, node)
        self.slices = tuple(slices)
        self.claims: list[Claim] = []

    @classmethod
    def after(
        cls,
        node: core.Node,
        slices: Sequence[Slice],
        pods: Iterable[PodInfo],
        claims: Iterable[Claim],
        suffix: str,
    ) -> TemplateNode:
        """A copy of a node that has these: its pools are its own, and pods with claims have their own too."""
        made = cls(node, sanitized_slices(slices, node.metadata.name, suffix))
        pools = {each.spec.pool.name for each in slices}
        known = list(claims)
        for info in pods:
            if not info.pod.spec.resourceClaims:
                made.add_pod(info)
                continue
            copy = _copied(info.pod, node.metadata.name, suffix)
            made.add_pod(PodInfo(copy))
            made.claims += sanitized_claims(known, info.pod, copy, pools, suffix)
        return made


def _copied(pod: core.Pod, node_name: str, suffix: str) -> core.Pod:
    copy = core.Pod()
    copy.CopyFrom(pod)
    copy.metadata.name, copy.metadata.uid = f"{pod.metadata.name}-{suffix}", f"{pod.metadata.uid}-{suffix}"
    copy.spec.nodeName = node_name
    for status in copy.status.resourceClaimStatuses:
        if status.HasField("resourceClaimName"):
            status.resourceClaimName = f"{status.resourceClaimName}-{suffix}"
    return copy
