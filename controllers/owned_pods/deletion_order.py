"""Which pods of a controller are deleted first. Pure.

Source: kube-controller-manager 1.36, controller_utils (ActivePodsWithRanks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Final

from nominee.controllers.owned_pods.readiness import is_ready
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_sidecar

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


def restarts(pod: core.Pod) -> tuple[int, int]:
    """Return the most restarts of a container, and of a sidecar, which count where the first are equal.

    Source: compareMaxContainerRestarts.
    """
    sidecars = {container.name for container in pod.spec.initContainers if is_sidecar(container)}
    statuses = pod.status.initContainerStatuses
    return (
        max((status.restartCount for status in pod.status.containerStatuses), default=0),
        max((status.restartCount for status in statuses if status.name in sidecars), default=0),
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pod that may be deleted, and its rank before times count; `now` is the time of the decision."""

    pod: core.Pod
    rank: tuple[bool, int, bool, int, int]
    now: float

    def compare(self, other: _Candidate) -> int:
        """Return a negative number if this pod is deleted before the other one, a positive one if after."""
        if self.rank != other.rank:
            return -1 if self.rank < other.rank else 1
        ready, other_ready = ready_since(self.pod), ready_since(other.pod)
        if ready != other_ready:
            return self._compare_ages(ready, other, other_ready)
        mine, others = restarts(self.pod), restarts(other.pod)
        if mine != others:
            return -1 if mine > others else 1
        created, other_created = (each.pod.metadata.creationTimestamp.seconds for each in (self, other))
        return self._compare_ages(created, other, other_created) if created != other_created else 0

    def _compare_ages(self, since: int, other: _Candidate, other_since: int) -> int:
        """Order by the ages on a logarithmic scale; of two that are equal there, the uids decide."""
        difference = self._age_bucket(since) - self._age_bucket(other_since)
        if difference:
            return difference
        return -1 if self.pod.metadata.uid < other.pod.metadata.uid else 1

    def _age_bucket(self, seconds: int) -> int:
        """Return the power of two that an age in nanoseconds reaches (logarithmicRankDiff)."""
        if not seconds:
            return -2  # no time at all counts as the youngest
        nanoseconds = (self.now - seconds) * 1e9
        return int(math.log2(nanoseconds)) if nanoseconds >= 1 else -1


def to_delete(
    pods: Sequence[core.Pod], count: int, siblings_on_node: Mapping[str, int], now_seconds: float
) -> list[core.Pod]:
    """Return the `count` pods to delete.

    First are pods that are unassigned, pending, not ready, of low deletion cost, on a node with many related
    pods, ready for a short time, often restarted, young. `siblings_on_node` counts the active related pods.
    Upstream's comparison is no strict order: pods that are equal in one respect are compared by the next, but
    others nearly equal by uid. Beginning in the order of uids makes the result the same each time.
    """
    candidates = [
        _Candidate(pod, (*stage(pod), _cost(pod), -siblings_on_node.get(pod.spec.nodeName, 0)), now_seconds)
        for pod in sorted(pods, key=lambda pod: pod.metadata.uid)
    ]
    return [each.pod for each in sorted(candidates, key=cmp_to_key(_Candidate.compare))[:count]]
