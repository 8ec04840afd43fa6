"""When a pod must leave a node with NoExecute taints. Pure.

Source: kube-controller-manager 1.36, pkg/controller/tainteviction.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import NO_EXECUTE, matching_toleration


def seconds_to_live(pod: core.Pod, taints: Iterable[core.Taint], *, comparison: bool = False) -> float | None:
    """Return how long a pod may stay under these taints: 0 evicts now, None is for ever.

    For each taint the first toleration that matches counts, and of these the shortest tolerationSeconds.
    `comparison` is the gate TaintTolerationComparisonOperators.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        first = matching_toleration(pod.spec.tolerations, taint, comparison=comparison)
        if first is None:
            return 0.0
        if first.HasField("tolerationSeconds"):
            seconds = max(float(first.tolerationSeconds), 0.0)
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
