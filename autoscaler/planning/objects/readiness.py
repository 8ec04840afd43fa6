"""Whether nodes are ready. Pure.

Source: cluster-autoscaler 1.36, utils/kubernetes, custom resources processor and startup taints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nominee.autoscaler.planning.objects.taints import has_startup_taint
from nominee.machinery.api.objects import condition_is, copy_of
from nominee.machinery.api.pb import core

_NOT_READY_TAINTS = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    )
)


def is_ready(node: core.Node) -> bool:
    """Report whether the Ready condition is True, the network is available, and no taint contradicts that."""
    ready = False
    for condition in node.status.conditions:
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "NetworkUnavailable" and condition.status == "True":
            return False
    return ready and not any(taint.key in _NOT_READY_TAINTS for taint in node.spec.taints)


def is_ready_and_schedulable(node: core.Node) -> bool:
    return is_ready(node) and not node.spec.unschedulable


def is_suspended(node: core.Node) -> bool:
    """Report whether the node has the condition Suspended: it stays registered and takes no pods."""
    return condition_is(node.status.conditions, "Suspended")


def filter_out_unready(nodes: Iterable[core.Node], lacking_devices: Collection[str]) -> tuple[core.Node, ...]:
    """Replace each ready node that has a startup taint, or is one of those, by a copy that is not ready.

    Such a node is still upcoming. If it counted as ready, it would have no room for the pods that triggered
    its scale-up, and another node would be added for them. A cordoned node stays as it is.
    """
    return tuple(
        _not_ready_copy(node)
        if is_ready_and_schedulable(node)
        and (has_startup_taint(node) or node.metadata.name in lacking_devices)
        else node
        for node in nodes
    )


def _not_ready_copy(node: core.Node) -> core.Node:
    copy = copy_of(node)
    for condition in copy.status.conditions:
        if condition.type == "Ready":
            condition.status = "False"
    return copy
