"""A StatefulSet creates the pods of its ordinals, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.generations import drop_read
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, POD, STATEFUL_SET
from nominee.machinery.api.objects import condition_is, controller_of, is_terminating
from nominee.machinery.api.pb import apps, core

STALE_SECONDS: Final = 60.0
"""How long a controller may still see a pod as ready that is not any more."""
_CONTROLLERS: Final = "kube-controller-manager"


@dataclass(frozen=True, slots=True)
class _Spec:
    """The ordinals that a version of a set has, and whether it creates them in order."""

    ordinals: range
    ordered: bool


@dataclass(slots=True)
class _Set:
    """A set's newest version, and its specs by generation that a stale cache may show."""

    newest: Revision
    specs: dict[int, _Spec] = field(default_factory=dict)

    def follow(self, of: apps.StatefulSet, revision: Revision) -> None:
        """Note a version; the controller has read the observedGeneration, and reads no older one."""
        self.newest = revision
        start = of.spec.ordinals.start
        self.specs[of.metadata.generation] = _Spec(
            range(start, start + of.spec.replicas), of.spec.podManagementPolicy != "Parallel"
        )
        drop_read(self.specs, of.status.observedGeneration)


class Ordinals(Checker):
    """Looks at each pod that is created for a StatefulSet.

    Its ordinal is one of a version of the set that the controller may read. In an ordered set all pods of
    lower ordinals were ready, in some view that the controller may have. Adopted pods do not count.
    Source: kube-controller-manager 1.36, pkg/controller/statefulset (updateStatefulSet, processReplica).
    """

    about = Invariant(
        name="ordinals-are-created-in-order",
        description="A StatefulSet's controller creates only pods of its ordinals; with OrderedReady each "
        "when those of all lower ordinals are ready.",
        checks="pods that were created for a StatefulSet",
        exceptions={
            "new-leader": "another controller manager became the leader shortly before; a write of the "
            "former leader may have been under way",
            "stale-start": "WatchListClient is off: a controller manager that was restarted may begin "
            "with an older state",
        },
    )
    kinds = frozenset({STATEFUL_SET, POD, LEASE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._sets: dict[str, _Set] = {}
        self._ready_until: defaultdict[str, dict[int, float]] = defaultdict(dict)
        """When the pod of a set and an ordinal was last ready and not terminating; infinite while it is."""
        self._leaders = Leaders(_CONTROLLERS)

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a set, a leader or a pod, and check a creation."""
        if revision.kind is STATEFUL_SET:
            self._observe_set(revision)
        elif revision.kind is LEASE:
            self._leaders.observe(revision)
        else:
            yield from self._observe_pod(revision)

    def _observe_set(self, revision: Revision) -> None:
        before, of = revision.before(STATEFUL_SET), revision.after(STATEFUL_SET)
        if before is not None and (of is None or of.metadata.uid != before.metadata.uid):
            self._sets.pop(before.metadata.uid, None)
            self._ready_until.pop(before.metadata.uid, None)
        if of is not None:
            self._sets.setdefault(of.metadata.uid, _Set(revision)).follow(of, revision)

    def _observe_pod(self, revision: Revision) -> Iterator[Violation]:
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._note(ended, revision.time, is_ready=False)
        if pod is None:
            return
        owner = _owner_of(pod)
        found = self._sets.get(owner)
        if found is not None and same_pod_before(revision) is None and not revision.is_state:
            yield from self._check(found, owner, pod, revision)
        is_ready = condition_is(pod.status.conditions, "Ready")
        self._note(pod, revision.time, is_ready=is_ready and not is_terminal(pod) and not is_terminating(pod))

    def _note(self, pod: core.Pod, now: float, *, is_ready: bool) -> None:
        owner, ordinal = _owner_of(pod), _ordinal(pod)
        if owner and is_ready:
            self._ready_until[owner][ordinal] = float("inf")
        elif owner in self._ready_until and self._ready_until[owner].get(ordinal) == float("inf"):
            self._ready_until[owner][ordinal] = now

    def _check(self, found: _Set, owner: str, pod: core.Pod, revision: Revision) -> Iterator[Violation]:
        self.checked += 1
        not_ready = {
            ordinal: self.served_time.between(until, revision.time)
            for ordinal, until in self._ready_until[owner].items()
        }
        problem = _problem(list(found.specs.values()), not_ready, _ordinal(pod))
        if not problem:
            return
        if self._leaders.changed_before(revision.time):
            self.allow("new-leader")
        elif "controllers" not in self.settings.lists_newest:
            self.allow("stale-start")
        else:
            yield self.violation(f"{found.newest.subject} {problem}", found.newest, revision)


def _ordinal(pod: core.Pod) -> int:
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isascii() and text.isdigit() else -1


def _owner_of(pod: core.Pod) -> str:
    """Return the uid of the set that controls a pod, or ""."""
    owner = controller_of(pod)
    return owner.uid if owner is not None and owner.kind == STATEFUL_SET.kind else ""


def _problem(specs: list[_Spec], not_ready: dict[int, float], ordinal: int) -> str:
    """Return why no view of a set allows a new pod of an ordinal, or "".

    `not_ready` is for how long the pod of each ordinal has not been ready.
    """
    if all(ordinal not in each.ordinals for each in specs):
        return f"got a pod of the ordinal {ordinal}, which no version has"
    if not all(each.ordered for each in specs):
        return ""
    for lower in range(ordinal):
        is_needed = all(lower in each.ordinals for each in specs)
        if is_needed and not_ready.get(lower, float("inf")) > STALE_SECONDS:
            return f"got a pod of the ordinal {ordinal} while that of the ordinal {lower} was not ready"
    return ""
