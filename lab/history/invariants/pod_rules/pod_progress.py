"""A pod's status only moves forward: phase, startTime, restarts, and the condition PodScheduled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.former_objects import FORMER_OBJECT, FormerObjects
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, POD
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core

_UNTRIED: Final = ("", "SchedulingGated")
"""The reasons of PodScheduled of a pod that no scheduler has tried."""
_ORDER: Final = {"": 0, "Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
"""Phases in the order in which a pod has them. A pod whose node is lost may be Unknown at any time."""
_ASSIGNED: Final = "is already assigned to node"
"""In the API server's answer to the binding of a bound pod."""
_BOUND_SECONDS: Final = 15.0
"""How long a scheduler may not have seen the binding by another one."""
_TAKEOVER_SECONDS: Final = 5.0
"""How long after another scheduler's first term the former leader's attempts may still be under way."""


class PodProgress(Checker):
    """Compares the status of a pod before and after each write.

    A binding sets PodScheduled to True in the write that sets nodeName, and nothing that happens to a bound
    pod makes it unscheduled again: a scheduler that has not heard of its own binding must not say so.
    Source: kube-apiserver 1.36, BindingREST; kubelet 1.36, status manager and mergePodStatus.
    """

    about = Invariant(
        name="pods-move-forward",
        description="A bound pod stays PodScheduled, one with scheduling gates is not tried, a phase never "
        "goes back, startTime never changes, and no restartCount falls.",
        checks="bindings of pods and changes of their statuses",
        exceptions={
            **FORMER_OBJECT,
            "new-leader": "another scheduler became the leader shortly before; a binding was refused, or an "
            "attempt failed at a pod that the former leader had bound: no watch had that binding yet, which "
            f"was {_BOUND_SECONDS:.0f} s old at most",
        },
    )
    kinds = frozenset({POD, LEASE})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._former = FormerObjects()
        self._leaders = Leaders("kube-scheduler")
        self._bound_at: LRUCache[str, float] = LRUCache(PODS_MAX)
        """When a pod got its node, by uid."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Compare a pod with its former state."""
        if revision.kind is LEASE:
            self._leaders.observe(revision)
            return
        self._former.observe(revision)
        pod, before = revision.after(POD), same_pod_before(revision)
        if pod is None:
            return
        if pod.spec.nodeName and not revision.is_state and (before is None or not before.spec.nodeName):
            self._bound_at[pod.metadata.uid] = revision.time
        if before is None:
            return
        if before.status == pod.status and before.spec.nodeName == pod.spec.nodeName:
            return
        self.checked += 1
        for problem in _scheduled(before, pod):
            if not _may_be_patch(before, pod):
                yield self.violation(problem, revision)
            elif self._former.may_reach(revision, self.served_time):
                self.allow("former-object")
            elif self._may_be_unseen(pod, revision.time) and self._leaders.changed_before(revision.time):
                self.allow("new-leader")
            else:
                yield self.violation(problem, revision)
        for problem in _problems(before, pod):
            yield self.violation(problem, revision)

    def _may_be_unseen(self, pod: core.Pod, now: float) -> bool:
        """Return whether a scheduler may not have seen yet that the pod was bound."""
        bound_at = self._bound_at.get(pod.metadata.uid)
        if bound_at is None or self.served_time.between(bound_at, now) >= _BOUND_SECONDS:
            return False
        return _is_refused(pod) or bound_at <= self._leaders.since + _TAKEOVER_SECONDS


def _problems(before: core.Pod, pod: core.Pod) -> Iterator[str]:
    old, new = before.status, pod.status
    if _goes_back(old.phase, new.phase):
        yield f"the pod was {old.phase} and is {new.phase} again"
    if old.HasField("startTime") and old.startTime != new.startTime:
        yield "the pod's startTime changed"
    for name, count, former in _restarts(old, new):
        if count < former:
            yield f"the restartCount of container {name!r} fell from {former} to {count}"


def _scheduled(before: core.Pod, pod: core.Pod) -> Iterator[str]:
    old = get_condition(before.status.conditions, "PodScheduled")
    new = get_condition(pod.status.conditions, "PodScheduled")
    if new is not None and new != old and pod.spec.schedulingGates and new.reason not in _UNTRIED:
        yield f"the pod has scheduling gates, and its PodScheduled became {new.status} ({new.reason})"
    if not pod.spec.nodeName:
        return
    status = "unset" if new is None else f"{new.status} ({new.reason})" if new.reason else new.status
    is_true = new is not None and new.status == "True"
    if not before.spec.nodeName:
        if not is_true:
            yield f"the pod was bound to node {pod.spec.nodeName!r}, and its PodScheduled is {status}"
    elif new is None and pod.status.phase == "Failed":
        return  # a kubelet that rejects a pod replaces its status and conditions (rejectPod, mergePodStatus)
    elif not is_true and (new is not None or old is not None) and (old is None or old.status == "True"):
        yield f"the pod is bound to node {pod.spec.nodeName!r}, and its PodScheduled became {status}"


def _may_be_patch(before: core.Pod, pod: core.Pod) -> bool:
    """Return whether a scheduler may have written no more than PodScheduled=False."""
    condition = get_condition(pod.status.conditions, "PodScheduled")
    is_false = condition is not None and condition.status == "False"
    return is_false and before.spec.nodeName == pod.spec.nodeName


def _is_refused(pod: core.Pod) -> bool:
    """Return whether PodScheduled says that a binding was refused, since the pod had a node."""
    condition = get_condition(pod.status.conditions, "PodScheduled")
    return condition is not None and condition.reason == "SchedulerError" and _ASSIGNED in condition.message


def _goes_back(old: str, new: str) -> bool:
    if old == new or old not in _ORDER or new not in _ORDER:
        return False
    return _ORDER[new] < _ORDER[old] or _ORDER[old] == _ORDER["Failed"]


def _restarts(old: core.PodStatus, new: core.PodStatus) -> Iterator[tuple[str, int, int]]:
    """Yield name, restarts and former restarts of each container that both statuses have."""
    for before, after in (
        (old.initContainerStatuses, new.initContainerStatuses),
        (old.containerStatuses, new.containerStatuses),
        (old.ephemeralContainerStatuses, new.ephemeralContainerStatuses),
    ):
        former = {status.name: status.restartCount for status in before}
        for status in after:
            if status.name in former:
                yield status.name, status.restartCount, former[status.name]
