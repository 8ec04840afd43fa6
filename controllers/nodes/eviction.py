"""When a pod must leave a node with NoExecute taints. Pure.

Source: kube-controller-manager 1.36, pkg/controller/tainteviction.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import NO_EXECUTE, tolerates


def seconds_to_live(pod: core.Pod, taints: Iterable[core.Taint]) -> float | None:
    """Return how long a pod may stay under these taints: 0 evicts now, None is for ever.

    The shortest tolerationSeconds among the matching tolerations counts.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [toleration for toleration in pod.spec.tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        for toleration in matching:
            if toleration.HasField("tolerationSeconds"):
                seconds = max(float(toleration.tolerationSeconds), 0.0)
                shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
