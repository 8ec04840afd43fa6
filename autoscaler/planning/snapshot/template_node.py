"""Nodes that do not exist (yet), made after a template, with the pods and devices that come with them. Pure.

Source: cluster-autoscaler 1.36, simulator's node info utilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nominee.autoscaler.planning.objects import annotation_keys
from nominee.autoscaler.planning.snapshot.dynamic_resources import Claim, Slice
from nominee.autoscaler.planning.snapshot.sanitized_devices import sanitized_claims, sanitized_slices
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import NodeInfo, PodInfo


class TemplateNode(NodeInfo):
    """A node with its devices (`slices`), its pods, and the claims that these pods own (`claims`)."""

    __slots__ = ("claims", "slices")

    def __init__(self, node: core.Node, slices: Sequence[Slice] = ()) -> None:
        super().__init__(node.metadata.name, node)
        self.slices = tuple(slices)
        self.claims: list[Claim] = []

    @classmethod
    def sanitize(
        cls,
        node: core.Node,
        slices: Sequence[Slice],
        pods: Iterable[PodInfo],
        claims: Iterable[Claim],
        suffix: str,
    ) -> TemplateNode:
        """Create the node with copies of another node's slices, pods and claims.

        The copies have pools and claims of their own; `suffix` is appended to their names.
        """
        new = cls(node, sanitized_slices(slices, node.metadata.name, suffix))
        pools = {each.spec.pool.name for each in slices}
        all_claims = list(claims)
        for info in pods:
            if not info.pod.spec.resourceClaims:
                new.add_pod(info)
                continue
            copy = _pod_copy(info.pod, node.metadata.name, suffix)
            new.add_pod(PodInfo(copy))
            new.claims += sanitized_claims(all_claims, info.pod, copy, pools, suffix)
        return new


def fresh_node_info(template: TemplateNode, suffix: str, *, upcoming: bool = False) -> TemplateNode:
    """Return a node like the template, whose name is the template's with `suffix`."""
    assert template.node is not None
    node = copy_of(template.node)
    node.metadata.name = node.metadata.labels[annotation_keys.HOSTNAME_LABEL] = f"{template.name}-{suffix}"
    if upcoming:
        node.metadata.annotations[annotation_keys.UPCOMING_NODE] = "true"
    return TemplateNode.sanitize(node, template.slices, template.pods.values(), template.claims, suffix)


def _pod_copy(pod: core.Pod, node_name: str, suffix: str) -> core.Pod:
    copy = copy_of(pod)
    copy.metadata.name, copy.metadata.uid = f"{pod.metadata.name}-{suffix}", f"{pod.metadata.uid}-{suffix}"
    copy.spec.nodeName = node_name
    for status in copy.status.resourceClaimStatuses:
        if status.HasField("resourceClaimName"):
            status.resourceClaimName = f"{status.resourceClaimName}-{suffix}"
    return copy
