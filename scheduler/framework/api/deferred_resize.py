"""Define deferred resizes, and the variants of KEP-5836 that decide about them.

A bound pod whose resize its kubelet has deferred (PodResizePending, reason Deferred) is in the cache, and in
the scheduling queue too: preemption may make room for it on its own node. It is never bound again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_resize_deferred

FITS: Final = "pod resize fits, waiting for Kubelet actuation"
NODE_DISABLES_PREEMPTION: Final = "node had resize preemption disabled"
PREEMPTION_DISABLED: Final = "PodResizePreemptionDisabled"


class Flavour(StrEnum):
    """The design that is followed where the KEP's text and Kubernetes 1.37 differ."""

    KEP = "kep"
    V1_37 = "1.37"


class Tracking(StrEnum):
    """KEP-5836, "Tracking Preemption Nominations to Avoid Double Preemption", options 1 to 4."""

    NONE = "none"
    MEMORY = "memory"
    NOMINATED_NODE_NAME = "nominated-node-name"
    SPEC_NODE_NAME = "spec-node-name"


class Fit(StrEnum):
    """The requests that other pods of the node count for (KEP-5836, "Risk of Additional Preemption")."""

    SCHEDULER = "scheduler"  # the most of desired, allocated and actual
    KUBELET = "kubelet"  # the most of allocated and actual


@dataclass(frozen=True, slots=True)
class ResizePreemption:
    """The options of kube-scheduler's process here; the defaults are the KEP's alpha."""

    flavour: Flavour = Flavour.KEP
    tracking: Tracking = Tracking.NONE
    fit: Fit = Fit.SCHEDULER


ALPHA: Final = ResizePreemption()


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
