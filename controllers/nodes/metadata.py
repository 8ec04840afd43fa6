"""The metadata of a node that controllers keep: the beta labels and the TTL annotation. Pure."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core

TTL_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
_OLD_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
# (at most so many nodes, seconds); kube-controller-manager 1.36, pkg/controller/ttl.
_TTL_STEPS: Final = ((100, 0), (500, 15), (1000, 30), (2000, 60))
_TTL_MAX: Final = 300


def ttl_seconds(nodes: int) -> int:
    """Return how long kubelets may cache secrets and config maps, by the number of nodes."""
    return next((seconds for most, seconds in _TTL_STEPS if nodes <= most), _TTL_MAX)


def patch(node: core.Node, nodes: int) -> dict[str, object]:
    """Return the merge patch of metadata that the node needs, {} where it needs no change."""
    metadata: dict[str, object] = {}
    ttl = str(ttl_seconds(nodes))
    if node.metadata.annotations.get(TTL_ANNOTATION) != ttl:
        metadata["annotations"] = {TTL_ANNOTATION: ttl}
    labels = {
        old: node.metadata.labels[new]
        for new, old in _OLD_LABELS.items()
        if new in node.metadata.labels and node.metadata.labels.get(old) != node.metadata.labels[new]
    }
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata} if metadata else {}
