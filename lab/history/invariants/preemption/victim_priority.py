"""A scheduler evicts pods of lower priority only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.former_objects import FORMER_OBJECT, FormerObjects
from nominee.lab.history.invariants.checking.pods import ended_pod, is_pending, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX, is_marked, preemptor_uid
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, POD
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_resize_deferred
from nominee.machinery.scheduling.priority import pod_priority

RECENT_SECONDS: Final = 60.0
"""How long after a pod was bound or deleted it may have been the preemptor of a victim that is marked."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A pod's priority, and a write that shows it."""

    priority: int
    seen: Revision


@dataclass(frozen=True, slots=True)
class _Mark:
    """A victim whose preemptor is not known yet."""

    victim: _Known
    highest_waiting: int | None
    """The highest priority of the pods that waited for room when it was marked, or shortly before."""
    has_former: bool
    """Whether the mark may have been meant for a former pod of the name."""


class VictimPriority(Checker):
    """Finds a victim's preemptor by the Preempted event, and compares the priorities.

    The event comes after the eviction, and is lost if the scheduler dies between; then the victim's mark
    (DisruptionTarget with reason PreemptionByScheduler) shows an eviction by some pod that waited for room.
    Neither the mark nor the deletion names a uid: a pod that was created again may have another priority.
    Source: kube-scheduler 1.36, util.PatchPodStatus and util.DeletePod.
    """

    about = Invariant(
        name="victims-have-lower-priority",
        description="A pod that a scheduler preempts has a lower priority than the preemptor.",
        checks="preempted pods",
        exceptions={
            "preemptor-unknown": "no Preempted event names the preemptor, but a pod of higher priority "
            "waited for room",
            **FORMER_OBJECT,
        },
    )
    kinds = frozenset({POD, EVENT})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._known: dict[str, _Known] = {}
        self._gone: LRUCache[str, _Known] = LRUCache(PODS_MAX)
        self._waiting: dict[str, int] = {}
        self._waited: LRUCache[str, tuple[int, float]] = LRUCache(PODS_MAX)
        self._marks: dict[str, _Mark] = {}
        self._former = FormerObjects()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod's priority or mark, or compare the pods of an event."""
        if revision.kind is EVENT:
            event = revision.after(EVENT)
            if event is not None and not revision.is_state:
                yield from self._compare(event, revision)
            return
        self._former.observe(revision)
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            uid = ended.metadata.uid
            self._stops_waiting(uid, revision.time)
            known = self._known.pop(uid, None)
            if known is not None:
                self._gone[uid] = known
        if pod is None:
            return
        uid, priority = pod.metadata.uid, pod_priority(pod)
        known = self._known.get(uid)
        if known is None or known.priority != priority:
            known = self._known[uid] = _Known(priority, revision)
        if is_pending(pod) or is_resize_deferred(pod):
            self._waiting[uid] = priority
        else:
            self._stops_waiting(uid, revision.time)
        before = same_pod_before(revision)
        if is_marked(pod) and not revision.is_state and not (before is not None and is_marked(before)):
            self.checked += 1
            self._marks[uid] = _Mark(
                victim=_Known(priority, revision),
                highest_waiting=self._highest_waiting(uid, revision.time),
                has_former=self._former.may_reach(revision, self.served_time),
            )

    def _stops_waiting(self, uid: str, time: float) -> None:
        priority = self._waiting.pop(uid, None)
        if priority is not None:
            self._waited[uid] = (priority, time)

    def _highest_waiting(self, victim: str, now: float) -> int | None:
        recent = (
            priority
            for priority, time in self._waited.values()
            if self.served_time.between(time, now) <= RECENT_SECONDS
        )
        waiting = (priority for uid, priority in self._waiting.items() if uid != victim)
        return max([*waiting, *recent], default=None)

    def _compare(self, event: core.Event, revision: Revision) -> Iterator[Violation]:
        preemptor_of = preemptor_uid(event)
        victim_of = event.involvedObject.uid
        mark = self._marks.pop(victim_of, None) if preemptor_of else None
        victim = mark.victim if mark is not None else self._find(victim_of)
        preemptor = self._find(preemptor_of)
        if victim is None or preemptor is None:
            return
        if mark is None:
            self.checked += 1
        if victim.priority >= preemptor.priority:
            yield self.violation(
                f"the pod of priority {victim.priority} was preempted by {preemptor.seen.subject} of "
                f"priority {preemptor.priority}",
                victim.seen,
                preemptor.seen,
                revision,
            )

    def _find(self, uid: str) -> _Known | None:
        return self._known.get(uid) or self._gone.get(uid)

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Check the victims whose preemptor did not become known."""
        for mark in self._marks.values():
            highest = mark.highest_waiting
            if highest is not None and highest > mark.victim.priority:
                self.allow("preemptor-unknown")
                continue
            if mark.has_former:
                self.allow("former-object")
                continue
            waited = "no pod" if highest is None else f"no pod of more than priority {highest}"
            message = (
                f"the pod of priority {mark.victim.priority} was preempted, and {waited} waited for room"
            )
            yield self.violation(message, mark.victim.seen)
