"""The containers of a deleted pod have the time that they need to stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.objects import get_condition, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.values.scalars import parse_seconds

_STOP_DELAY: Final = "nominee.dev/stop-delay"
_RUN_DURATION: Final = "nominee.dev/run-duration"
_OTHERS: Final = ("nominee.dev/rules", "nominee.dev/liveness-probe")
"""Annotations with which containers may be ended, or have another time to stop."""
_CLOCKS_SECONDS: Final = 120.0
"""So much the clocks of components may differ."""
_MARGIN_SECONDS: Final = 0.5
_OF_POD_GC: Final = "DeletionByPodGC"


class GracePeriods(Checker):
    """Looks at the phase of a pod that terminates and whose containers run.

    The time counts from the write that set the deletionTimestamp, or a shorter period; a kubelet that is
    started meanwhile gives the whole period once more.
    Source: kubelet 1.36, killContainer: preStop hooks run within the grace period.
    """

    about = Invariant(
        name="grace-periods-are-given",
        description="A deleted pod whose containers run ends when its preStop hooks have slept and its "
        f"containers have stopped ({_STOP_DELAY}), or the grace period is over, and not before.",
        checks="ends of deleted pods whose containers take time to stop",
        exceptions={
            "for-another-reason": "the pod has a reason, as one that is evicted or preempted by its kubelet, "
            "or the pod garbage collector ends it",
        },
    )
    kinds = frozenset({POD})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._ends: LRUCache[str, float] = LRUCache(PODS_MAX)
        """The earliest end of a pod that terminates, by uid, in seconds since the epoch."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a deletion, or check the end of a deleted pod."""
        pod, before = revision.after(POD), same_pod_before(revision)
        if pod is None or before is None:
            return
        self._note_deletion(before, pod, revision)
        end = self._ends.get(pod.metadata.uid)
        if end is None or not (_runs(before) and is_terminal(pod)):
            return
        self.checked += 1
        early = end - revision.time
        if early <= _MARGIN_SECONDS:
            return
        if _has_reason(pod):
            self.allow("for-another-reason")
            return
        yield self.violation(
            f"the pod has ended {early:.1f} s before its containers can have stopped", revision
        )

    def _note_deletion(self, before: core.Pod, pod: core.Pod, revision: Revision) -> None:
        needed = _stop_seconds(pod, revision.time)
        if not (needed and is_terminating(pod)):
            return
        grace = pod.metadata.deletionGracePeriodSeconds
        if is_terminating(before) and before.metadata.deletionGracePeriodSeconds == grace:
            return
        end = revision.time + min(needed, float(grace))
        self._ends[pod.metadata.uid] = min(end, self._ends.get(pod.metadata.uid, end))


def _runs(pod: core.Pod) -> bool:
    return not is_terminal(pod) and any(
        each.state.HasField("running") for each in pod.status.containerStatuses
    )


def _has_reason(pod: core.Pod) -> bool:
    target = get_condition(pod.status.conditions, "DisruptionTarget")
    return bool(pod.status.reason) or (target is not None and target.reason == _OF_POD_GC)


def _stop_seconds(pod: core.Pod, now: float) -> float:
    """Return how long the containers take to stop; 0.0 if they may end by themselves."""
    annotations = pod.metadata.annotations
    if any(name in annotations for name in _OTHERS):
        return 0.0
    if _RUN_DURATION in annotations:
        age = now - from_time(pod.metadata.creationTimestamp) + float(pod.metadata.deletionGracePeriodSeconds)
        if _seconds(annotations[_RUN_DURATION]) < age + _CLOCKS_SECONDS:
            return 0.0
    hooks = (
        each.lifecycle.preStop.sleep.seconds for each in (*pod.spec.containers, *pod.spec.initContainers)
    )
    return float(max(hooks, default=0)) + _seconds(annotations.get(_STOP_DELAY, ""))


def _seconds(text: str) -> float:
    with suppress(ValueError):
        return parse_seconds(text)
    return 0.0
