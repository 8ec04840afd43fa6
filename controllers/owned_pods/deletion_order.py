"""Which pods of a controller are deleted first. Pure.

Source: kube-controller-manager 1.36, controller_utils (ActivePodsWithRanks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nominee.controllers.owned_pods.readiness import is_ready
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANK: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def _cost(pod: core.Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def stage(pod: core.Pod) -> tuple[bool, int, bool]:
    """Return how far a pod has come: it is assigned, pending or running, ready."""
    return bool(pod.spec.nodeName), _PHASE_RANK.get(pod.status.phase, 1), is_ready(pod)


def ready_since(pod: core.Pod) -> int:
    """Return since when a pod is ready, in seconds since the epoch; 0 for one that is not."""
    ready = get_condition(pod.status.conditions, "Ready")
    return ready.lastTransitionTime.seconds if ready is not None and ready.status == "True" else 0


def restarts(pod: core.Pod) -> int:
    """Return the restarts of the container that was restarted most."""
    return max((status.restartCount for status in pod.status.containerStatuses), default=0)


def _age_bucket(seconds: int, now: float) -> int:
    """Return the age on a logarithmic scale, so that among old pods the order is by uid."""
    return int(math.log2(max(now - seconds, 1))) if seconds else -1


def to_delete(
    pods: Sequence[core.Pod], count: int, siblings_on_node: Mapping[str, int], now_seconds: float
) -> list[core.Pod]:
    """Return the `count` pods to delete.

    First are pods that are unassigned, pending, not ready, of low deletion cost, on a node with many related
    pods, ready for a short time, often restarted, young. `siblings_on_node` counts the active related pods.
    """

    def order(pod: core.Pod) -> tuple[float | str, ...]:
        reached = stage(pod)
        return (
            *reached,
            _cost(pod),
            -siblings_on_node.get(pod.spec.nodeName, 0),
            _age_bucket(ready_since(pod), now_seconds) if reached[-1] else 0,
            -restarts(pod),
            _age_bucket(pod.metadata.creationTimestamp.seconds, now_seconds),
            pod.metadata.uid,
        )

    return sorted(pods, key=order)[:count]
