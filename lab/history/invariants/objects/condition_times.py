"""The conditions of an object's status: each type once, and the time of its last transition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.former_objects import FORMER_OBJECT, FormerObjects
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import KINDS, LEASE, POD_DISRUPTION_BUDGET, AnyKind
from nominee.machinery.api.objects import get_condition, metadata_of
from nominee.machinery.api.pb import core

_TIME: Final = "lastTransitionTime"
_REASON_COUNTS: Final = frozenset({"ReplicaFailure"})
"""Types of conditions whose controller takes another reason for a transition."""
_OF_MEMORY: Final = frozenset({"PodResizePending", "PodResizeInProgress", "DisruptionTarget"})
"""Conditions whose age a kubelet forgets when it restarts (design/016), or a preemptor does not know yet."""
_OF_READINESS: Final = frozenset({"ContainersReady", "Ready"})
_OF_CONTAINERS: Final = _OF_READINESS | {"PodReadyToStartContainers"}
"""Conditions that a kubelet makes of the states of containers."""
_DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
_THAWED_SECONDS: Final = 0.5
"""What an API server had begun before it was frozen is written so soon after it."""
_LED_SECONDS: Final = 2.0
"""The watch of a scheduler that takes the lease may lack what the former leader wrote for so long."""
_FROZEN_SECONDS: Final = 1.5
"""A silence of less is usual in a small cluster."""
_ANOTHER_BEFORE: Final = frozenset({"FailedUpdateScale"})
"""Reasons of conditions that had another status before in the same sync (HPA, reconcileAutoscaler)."""
RESOLUTION_SECONDS: Final = 2.0
"""Times have whole seconds: two transitions may have one time."""


def _has_conditions(kind: AnyKind) -> bool:
    status = kind.message.DESCRIPTOR.fields_by_name.get("status")
    if status is None or status.message_type is None:
        return False
    conditions = status.message_type.fields_by_name.get("conditions")
    if conditions is None or conditions.message_type is None:
        return False
    return _TIME in conditions.message_type.fields_by_name


def _conditions(obj: Message | None) -> Sequence[core.PodCondition]:
    """Return the conditions of an object of a kind that has some, as those of pods."""
    return () if obj is None else getattr(obj, "status").conditions  # noqa: B009  # mypy knows no such attribute


@dataclass(frozen=True, slots=True)
class _Kept:
    """A transition with the time of the former status, which was written at `since`."""

    revision: Revision
    old: core.PodCondition
    new: core.PodCondition
    since: float
    problem: str

    def was_early(self, answer: Answer) -> bool:
        """Return whether the status was computed so early that its second may be that of the former one.

        A process that has just gone on may have computed it before it was frozen.
        """
        began = answer.begin_time
        return answer.was_frozen or not _transition(self.old, self.new, began - self.since, began)


class ConditionTimes(Checker):
    """Compares the conditions of an object before and after each write of it.

    A write may come long after its status was computed, as one that waits for a frozen API server. When it
    was sent is known where answers are observed; there a kept time is a violation at the end only.
    Source: apimachinery 1.36, meta.SetStatusCondition; kubelet, updateLastTransitionTime; scheduler,
    podutil.UpdatePodCondition; replicaset and replication, SetCondition (which compares the reason, too).
    """

    about = Invariant(
        name="conditions-keep-their-times",
        description="A status has one condition of a type. Its lastTransitionTime changes when its status "
        "changes, and only then, and its observedGeneration is of no later generation than the object's. "
        "AbleToScale with FailedUpdateScale may have another time: each sync of an HPA sets it to True "
        "before.",
        checks="conditions that a write changed",
        exceptions={
            **FORMER_OBJECT,
            "unseen-not-ready": "Ready was False for the node's sake, and its kubelet may not have seen it",
            "written-late": "a container of the pod ended or crashed, or the last one, without probes and "
            "gates, began in the second of both times: the kubelet reports late what happened then",
            "evicted-late": "the API server has allowed an eviction in the second of both times, as the "
            f"budget shows, and then nothing was written for {_FROZEN_SECONDS:g} s or more, until "
            f"{_THAWED_SECONDS:g} s before: it was frozen",
            "bound-already": "PodScheduled of a bound pod became True or False, which pods-move-forward "
            "finds: the kubelet takes back what a second scheduler wrote, with the time that it knows",
            "new-leader": "PodScheduled stays False, and another scheduler has taken the lease since the "
            f"former leader wrote it, {_LED_SECONDS:g} s ago or less: it may not have seen that",
            "sent-early": f"the write was late: it was sent within {RESOLUTION_SECONDS:g} s after the former "
            "transition, or by a process that had been frozen",
        },
    )
    takes_answers = True
    needs_answers = False
    kinds = frozenset(kind for kind in KINDS if _has_conditions(kind)) | {LEASE}

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._former = FormerObjects()
        self._leaders = Leaders("kube-scheduler")
        self._changed: dict[str, dict[str, float]] = {}
        """When the status of each condition was last written, by key and type; clocks may differ from it."""
        self._kept: dict[tuple[str, int], list[_Kept]] = {}
        """By key and revision; no answer shows yet that the write was sent early."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Compare the conditions of an object with the former ones."""
        if revision.is_state or not revision.is_readable:
            return
        if revision.kind is LEASE:
            self._leaders.observe(revision)
            return
        self._former.observe(revision)
        if revision.object is None:
            self._changed.pop(revision.key, None)
            return
        conditions, former = _conditions(revision.object), _conditions(revision.previous)
        if conditions == former:
            return
        for name, count in Counter(each.type for each in conditions).items():
            if count > 1:
                yield self.violation(f"the status has {count} conditions of the type {name}", revision)
        generation = metadata_of(revision.object).generation
        for each in conditions:
            old = get_condition(former, each.type)
            if each == old:
                continue
            self.checked += 1
            observed = getattr(each, "observedGeneration", 0)
            if generation and observed > generation:
                if self._former.may_reach(revision, self.served_time):
                    self.allow("former-object")
                else:
                    problem = f"is of generation {observed}, and the object has generation {generation}"
                    yield self.violation(f"the condition {each.type} {problem}", revision)
            changed = self._changed.setdefault(revision.key, {})
            since = changed.get(each.type, revision.time)
            if old is None or old.status != each.status:
                changed[each.type] = revision.time
            is_own = "/" not in each.type  # others, as those of readiness gates, are written by users
            if old is None or not is_own:
                continue
            age = self.served_time.between(since, revision.time)
            problem = _transition(old, each, age, revision.time)
            if not problem:
                continue
            if exception := self._exception(each, old, revision, since):
                self.allow(exception)
            elif old.status != each.status and self.settings.observes_answers:
                kept = _Kept(revision, old, each, since, f"the condition {each.type} {problem}")
                self._kept.setdefault((revision.key, revision.revision), []).append(kept)
            else:
                yield self.violation(f"the condition {each.type} {problem}", revision)

    def _exception(
        self, new: core.PodCondition, old: core.PodCondition, revision: Revision, since: float
    ) -> str:
        """Return the exception that the history shows, or ""; the former status was written at `since`."""
        is_unseen = since <= self._leaders.since and revision.time <= self._leaders.since + _LED_SECONDS
        if is_unseen and (new.type, new.status, old.status) == ("PodScheduled", "False", "False"):
            return "new-leader"
        if _is_marked(new.type, _conditions(revision.previous)):
            return "unseen-not-ready"
        if _is_late(new, old, revision.object):
            return "written-late"
        decided = new.lastTransitionTime.seconds + 1.0
        thawed = revision.time - _THAWED_SECONDS
        is_late = thawed - decided >= _FROZEN_SECONDS and self.served_time.was_silent(decided, thawed)
        if is_late and _is_of_eviction(new, revision):
            return "evicted-late"
        return "bound-already" if _is_of_bound(new, old, revision.previous) else ""

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Drop the transitions of a write that was sent early."""
        if self._kept and answer.outcome is Outcome.DONE and answer.method in (Method.UPDATE, Method.PATCH):
            written = answer.kind.key(answer.namespace, answer.name), answer.resource_version
            kept = self._kept.pop(written, [])
            left = [each for each in kept if not each.was_early(answer)]
            for _ in range(len(kept) - len(left)):
                self.allow("sent-early")
            if left:
                self._kept[written] = left
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report the transitions whose write was not sent early, or has no answer."""
        for kept in self._kept.values():
            for each in kept:
                yield self.violation(each.problem, each.revision)


def _is_of_eviction(condition: core.PodCondition, revision: Revision) -> bool:
    """Return whether a budget counts an eviction since this write, allowed in a condition's second."""
    before, budget = revision.before(POD_DISRUPTION_BUDGET), revision.after(POD_DISRUPTION_BUDGET)
    if before is None or budget is None or condition.type != _DISRUPTION_ALLOWED:
        return False
    new = budget.status.disruptedPods.keys() - before.status.disruptedPods.keys()
    times = {budget.status.disruptedPods[each].seconds for each in new}
    return condition.status == "False" and condition.lastTransitionTime.seconds in times


def _is_of_bound(new: core.PodCondition, old: core.PodCondition, obj: Message | None) -> bool:
    """Return whether PodScheduled gets another status, and the pod was bound before."""
    is_bound = isinstance(obj, core.Pod) and bool(obj.spec.nodeName)
    return is_bound and new.type == "PodScheduled" and new.status != old.status


def _is_late(new: core.PodCondition, old: core.PodCondition, obj: Message | None) -> bool:
    """Return whether the pod's containers have changed in the second of a condition, as it says.

    Two transitions within a second have one time, however late the kubelet, frozen or without an API server,
    writes the second one.
    """
    if not isinstance(obj, core.Pod) or new.type not in _OF_CONTAINERS or new.status == old.status:
        return False
    states = [each.state for each in obj.status.containerStatuses]
    if new.status == "False":
        if new.type in _OF_READINESS:  # a container that crashed waits, or runs again
            states += [each.lastState for each in obj.status.containerStatuses if not each.ready]
        times = [each.terminated.finishedAt.seconds for each in states if each.HasField("terminated")]
    else:
        is_probed = any(
            each.HasField("readinessProbe") or each.HasField("startupProbe") for each in obj.spec.containers
        )
        began = [each.running.startedAt.seconds for each in states if each.HasField("running")]
        times = [] if is_probed or obj.spec.readinessGates or not began else [max(began)]
    return new.lastTransitionTime.seconds in times


def _is_marked(name: str, former: Sequence[core.PodCondition]) -> bool:
    """Return whether a pod was not ready while its containers were: its node is lost (MarkPodsNotReady)."""
    statuses = {each.type: each.status for each in former}
    return name == "Ready" and statuses.get("Ready") == "False" and statuses.get("ContainersReady") == "True"


def _transition(old: core.PodCondition, new: core.PodCondition, age: float, written: float) -> str:
    """Return how the time of a condition contradicts its status, or "".

    `age` is that of its former status, which a clock that is ahead may have given the time of this write.
    """
    if not (old.HasField(_TIME) and new.HasField(_TIME)):
        return ""
    is_kept = old.lastTransitionTime.seconds == new.lastTransitionTime.seconds
    if old.status == new.status:
        is_another = new.type in _REASON_COUNTS and old.reason != new.reason
        if is_kept or is_another or new.type in _OF_MEMORY or new.reason in _ANOTHER_BEFORE:
            return ""
        return f"is still {new.status}, and its lastTransitionTime changed"
    is_now = abs(written - new.lastTransitionTime.seconds) <= RESOLUTION_SECONDS
    if is_kept and age > RESOLUTION_SECONDS and not is_now:
        return f"became {new.status}, and its lastTransitionTime is that of its former status"
    return ""
