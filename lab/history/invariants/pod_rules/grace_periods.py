"""The containers of a deleted pod have the time that they need to stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.objects import condition_is, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.scheduling.taints import OUT_OF_SERVICE, find_taint
from nominee.machinery.wire.values.scalars import parse_seconds

_STOP_DELAY: Final = "nominee.dev/stop-delay"
_RUN_DURATION: Final = "nominee.dev/run-duration"
_MAY_END_OTHERWISE: Final = (
    "nominee.dev/rules",
    "nominee.dev/liveness-probe",
    "nominee.dev/startup-probe",
)
"""Annotations with which containers are killed, or have another time to stop."""
_LOST_SECONDS: Final = 60.0
"""For so long the pod garbage collector may end a pod after its node has come back."""
_CLOCKS_SECONDS: Final = 120.0
"""A run-duration must be so much longer than a pod's age that it does not count: clocks may jump."""
_MARGIN_SECONDS: Final = 2.0
"""Times of objects are whole seconds."""


@dataclass(slots=True)
class _Deletion:
    """The deletions of a pod, with the time of each by the history and by the objects, and its period.

    By the objects a repeated deletion has the time of the first one: the API server moves the
    deletionTimestamp by as much as the period (rest.BeforeDelete).
    """

    requests: list[tuple[float, float, float]] = field(default_factory=list)
    needs: dict[str, float] = field(default_factory=dict)
    """How long each container takes to stop: the shortest time since the deletion, as annotations change."""

    def early_seconds(self, end: core.ContainerStateTerminated, now: float, needed: float) -> float:
        """Return how much too early containers that take so long to stop have ended, at least.

        By the history, and by `finishedAt`, which a container that its kubelet has lost does not have. 0.0 if
        it had ended before the deletion, which is reported late.
        """
        early = min(history + min(needed, period) for history, _, period in self.requests) - now
        finished = from_time(end.finishedAt)
        if not finished:
            return early
        if finished < min(asked for _, asked, _ in self.requests) - 1.0:
            return 0.0
        return min(early, *(asked + min(needed, period) - finished for _, asked, period in self.requests))


class GracePeriods(Checker):
    """Looks at the containers of a pod that terminates when a status shows that they have ended.

    The time counts from the deletion, or from one with a shorter period; a kubelet that is started meanwhile
    gives the whole period once more. Both the time of the write and the `finishedAt` of the container must be
    too early: clocks may jump, and a history that is read later has the times of its reading. Hooks that
    run a command, and pods that are removed without a status, are not looked at.
    Source: kubelet 1.36, killContainer: preStop hooks run within the grace period.
    """

    about = Invariant(
        name="grace-periods-are-given",
        description="A container of a deleted pod ends when its preStop hook has slept and it has stopped "
        f"({_STOP_DELAY}), or when the grace period is over, whichever is first, and not before. Not for "
        "pods with rules, a liveness or a startup probe, or a run-duration that may be over.",
        checks="ends of containers of deleted pods that take time to stop",
        exceptions={
            "for-another-reason": "the pod has a reason, as one that is evicted or preempted by its kubelet",
            "lost-node": "the pod's node is gone, not ready, or out of service, or was so a minute ago: the "
            "pod garbage collector may end the pod",
        },
    )
    kinds = frozenset({POD, NODE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._deletions: LRUCache[str, _Deletion] = LRUCache(PODS_MAX)
        """By uid; none of a pod whose deletion came in a part of the history that is missing."""
        self._good_since: dict[str, float] = {}
        """Since when a node is ready and in service again, by name; infinity for one that is not any more."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a node or a deletion, or check the end of a deleted pod."""
        if revision.kind is NODE:
            self._note_node(revision)
            return
        pod, before = revision.after(POD), same_pod_before(revision)
        if pod is None or before is None or not is_terminating(pod):
            return
        if revision.is_state:
            self._deletions.pop(pod.metadata.uid, None)
            return
        deletion = self._deletion_of(before, pod, revision)
        if deletion is not None and not is_terminal(before):
            yield from self._check(before, pod, deletion, revision)

    def _note_node(self, revision: Revision) -> None:
        node = revision.after(NODE)
        is_good = node is not None and condition_is(node.status.conditions, "Ready")
        since = self._good_since.get(revision.name)
        if node is None or not is_good or find_taint(node.spec.taints, OUT_OF_SERVICE):
            if since is not None:
                self._good_since[revision.name] = math.inf
        elif since is None or since == math.inf:
            self._good_since[revision.name] = -math.inf if since is None else revision.time

    def _deletion_of(self, before: core.Pod, pod: core.Pod, revision: Revision) -> _Deletion | None:
        """Return the deletion of a pod that terminates, after this write."""
        if not is_terminating(before):
            self._deletions[pod.metadata.uid] = _Deletion()
        deletion = self._deletions.get(pod.metadata.uid)
        if deletion is None:
            return None
        for each in pod.spec.containers:
            needed = _stop_seconds(pod, each, revision.time)
            deletion.needs[each.name] = min(needed, deletion.needs.get(each.name, needed))
        period = float(pod.metadata.deletionGracePeriodSeconds)
        if not deletion.requests or deletion.requests[-1][-1] != period:
            asked = from_time(pod.metadata.deletionTimestamp) - period
            deletion.requests.append((revision.time, asked, period))
        return deletion

    def _check(
        self, before: core.Pod, pod: core.Pod, deletion: _Deletion, revision: Revision
    ) -> Iterator[Violation]:
        ran = {each.name for each in before.status.containerStatuses if each.state.HasField("running")}
        for status in pod.status.containerStatuses:
            needed = deletion.needs.get(status.name, 0.0)
            has_ended = is_terminal(pod) or status.state.HasField("terminated")
            if not (needed and has_ended and status.name in ran):
                continue
            self.checked += 1
            early = deletion.early_seconds(status.state.terminated, revision.time, needed)
            if early <= _MARGIN_SECONDS:
                continue
            if pod.status.reason:
                self.allow("for-another-reason")
                continue
            if revision.time < self._good_since.get(pod.spec.nodeName, math.inf) + _LOST_SECONDS:
                self.allow("lost-node")
                continue
            yield self.violation(
                f"container {status.name!r} of the deleted pod has ended {early:.0f} s too early", revision
            )


def _stop_seconds(pod: core.Pod, container: core.Container, now: float) -> float:
    """Return how long a container takes to stop; 0.0 if it may end by itself, or be killed."""
    annotations = pod.metadata.annotations
    if any(name in annotations for name in _MAY_END_OTHERWISE):
        return 0.0
    if _RUN_DURATION in annotations:
        age = now - from_time(pod.metadata.creationTimestamp)
        if _seconds(annotations[_RUN_DURATION]) < age + _CLOCKS_SECONDS:
            return 0.0
    hook = container.lifecycle.preStop.sleep
    return float(hook.seconds) + _seconds(annotations.get(_STOP_DELAY, ""))


def _seconds(text: str) -> float:
    with suppress(ValueError):
        return max(parse_seconds(text), 0.0)
    return 0.0
