"""Define deferred resizes, and the variants of KEP-5836 that decide about them.

A bound pod whose resize its kubelet has deferred (PodResizePending, reason Deferred) is in the cache, and in
the scheduling queue too: preemption may make room for it on its own node. It is never bound again.
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_resize_deferred

FITS: Final = "pod resize fits, waiting for Kubelet actuation"
NODE_DISABLES_PREEMPTION: Final = "node had resize preemption disabled"
PREEMPTION_DISABLED: Final = "PodResizePreemptionDisabled"


def is_deferred_resize(pod: core.Pod) -> bool:
    """Return whether the pod is bound and its resize waits for room on its node."""
    return bool(pod.spec.nodeName) and is_resize_deferred(pod)


def is_disabled_by_kubelet(pod: core.Pod) -> bool:
    """Return whether the pod's kubelet reports that its node's policy forbids preemption for the resize."""
    condition = get_condition(pod.status.conditions, PREEMPTION_DISABLED)
    return condition is not None and condition.status == "True"


def is_disabled_by_node(node: core.Node | None) -> bool:
    """Return whether the node's policy forbids preemption for resizes: any owner is enough."""
    return node is not None and bool(node.spec.podPreemptionPolicy.disableResizePreemption)
