"""The order in which a kubelet handles the changes that a new list of pods shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nominee.kubelet.pods.record import PodRecord
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core

Change = tuple[str, core.Pod | None]
"""A pod's uid, and the pod; None for one that is gone."""

_REMOVE, _ADD, _UPDATE, _DELETE, _RECONCILE = range(5)


def merge_order(known: Mapping[str, PodRecord], changes: Iterable[Change]) -> list[Change]:
    """Return the changes that one list has brought, sorted by their kind.

    Removals come first, then additions by age, updates, graceful deletions, and statuses alone.
    Source: kubelet 1.36, podStorage.Merge, checkAndUpdatePod and HandlePodAdditions.
    """

    def rank(change: Change) -> tuple[int, int, int]:
        uid, pod = change
        if pod is None:
            return _REMOVE, 0, 0
        if uid not in known:
            created = pod.metadata.creationTimestamp
            return _ADD, created.seconds, created.nanos
        if not _differ(known[uid].pod, pod):
            return _RECONCILE, 0, 0
        return (_DELETE if is_terminating(pod) else _UPDATE), 0, 0

    return sorted(changes, key=rank)


def _differ(old: core.Pod, new: core.Pod) -> bool:
    """Return whether more than the status has changed (podsDifferSemantically)."""
    before, after = old.metadata, new.metadata
    return (
        old.spec != new.spec
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.deletionTimestamp != after.deletionTimestamp
        or before.deletionGracePeriodSeconds != after.deletionGracePeriodSeconds
    )
