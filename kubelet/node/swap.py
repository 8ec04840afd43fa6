"""Containers that may swap on a node with LimitedSwap. Pure.

Source: kubelet 1.36, GetContainerSwapBehavior; KEP-2400.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import MEMORY, amount
from nominee.machinery.resources.qos import BURSTABLE, recorded_qos_class
from nominee.machinery.scheduling.priority import is_critical

LIMITED_SWAP: Final = "LimitedSwap"


def swap_predicate(behavior: str) -> Callable[[core.Pod, str], bool]:
    """Return a function that says whether a container (by name) of a pod may swap.

    With LimitedSwap those of Burstable pods that are not critical may, unless the container requests no
    memory, or as much as its limit.
    """

    def may_swap(pod: core.Pod, name: str) -> bool:
        if behavior != LIMITED_SWAP or is_critical(pod) or recorded_qos_class(pod) != BURSTABLE:
            return False
        for container in (*pod.spec.containers, *pod.spec.initContainers):
            if container.name == name:
                request, limit = _memory(container)
                return request not in (0, limit)
        return False

    return may_swap


def _memory(container: core.Container) -> tuple[int, int]:
    """Return request and limit in bytes, 0 for none."""
    requests, limits = container.resources.requests, container.resources.limits
    return (
        amount(MEMORY, requests[MEMORY]) if MEMORY in requests else 0,
        amount(MEMORY, limits[MEMORY]) if MEMORY in limits else 0,
    )
