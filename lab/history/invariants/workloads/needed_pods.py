"""The controllers delete no active pod that its ReplicaSet needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.invariants.checking.replica_sets import (
    REPLICATED,
    ReadableReplicas,
    before_and_after,
)
from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NAMESPACE, POD
from nominee.machinery.api.objects import condition_is, controller_of, is_terminating
from nominee.machinery.api.pb import core

STALE_SECONDS: Final = 65.0
"""How long a controller may still see a pod that has ended, and delete another one in its place.

Its watch may be withheld for some seconds and lost, and a list whose request was lost is given up after 60 s.
"""
_CLIENT: Final = "controllers"


@dataclass(slots=True)
class _Set(ReadableReplicas):
    """A ReplicaSet with its pods."""

    active: set[str] = field(default_factory=set)
    ends: deque[float] = field(default_factory=deque)
    """When pods ended, in the last STALE_SECONDS."""

    def remove(self, uid: str, now: float) -> None:
        """Note that a pod is not active any more."""
        if uid in self.active:
            self.active.remove(uid)
            self.ends.append(now)

    def visible(self, now: float, served_time: ServedTime) -> int:
        """Return how many active pods a stale cache may show at most."""
        while self.ends and served_time.between(self.ends[0], now) > STALE_SECONDS:
            self.ends.popleft()
        return len(self.active) + len(self.ends)


@dataclass(frozen=True, slots=True)
class _End:
    """The write that ended an active pod of a set."""

    set_uid: str
    revision: Revision


class NeededPods(Checker):
    """Looks at the deletions that the controllers ask for.

    A pod that is active and no target of a disruption is deleted by its ReplicaSet's controller, which sees
    more pods than replicas, or by garbage collection, which asks the API server whether the owner is gone. A
    set that lives, and that has not more pods by any view, loses none.
    Source: kube-controller-manager 1.36, garbagecollector (attemptToDeleteItem), replicaset (manageReplicas).
    """

    about = Invariant(
        name="needed-pods-stay",
        description="The controllers delete no active pod of a ReplicaSet that has not more pods than "
        "replicas.",
        checks="deletions of pods of ReplicaSets and ReplicationControllers by the controllers",
    )
    kinds = frozenset({*REPLICATED, POD, NAMESPACE})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._sets: dict[str, _Set] = {}
        self._ends: LRUCache[str, _End] = LRUCache(PODS_MAX)
        self._ending: set[str] = set()
        """The namespaces that are being deleted."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a set, a pod or a namespace."""
        if revision.kind in REPLICATED:
            self._observe_set(revision)
        elif revision.kind is POD:
            self._observe_pod(revision)
        else:
            namespace = revision.after(NAMESPACE)
            if namespace is not None and is_terminating(namespace):
                self._ending.add(revision.name)
            else:
                self._ending.discard(revision.name)
        yield from ()

    def _observe_set(self, revision: Revision) -> None:
        before, replica_set = before_and_after(revision)
        if before is not None and (replica_set is None or replica_set.metadata.uid != before.metadata.uid):
            self._sets.pop(before.metadata.uid, None)
        if replica_set is None:
            return
        if is_terminating(replica_set):
            self._sets.pop(replica_set.metadata.uid, None)
        else:
            self._sets.setdefault(replica_set.metadata.uid, _Set(revision)).follow(replica_set, revision)

    def _observe_pod(self, revision: Revision) -> None:
        before, pod = revision.before(POD), revision.after(POD)
        is_same = same_pod_before(revision) is not None
        owner = None if before is None else _active_owner(before)
        new_owner = None if pod is None else _active_owner(pod)
        if before is not None and owner is not None and not (is_same and new_owner == owner):
            found = self._sets.get(owner)
            if found is not None:
                found.remove(before.metadata.uid, revision.time)
                self._ends[revision.key] = _End(owner, revision)
        if pod is not None and new_owner in self._sets:
            self._sets[new_owner].active.add(pod.metadata.uid)

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Check a deletion that the controllers asked for."""
        if answer.method is not Method.DELETE or answer.outcome is not Outcome.DONE:
            return
        if answer.kind is not POD or answer.client.split("-")[0] != _CLIENT:
            return
        end = self._ends.get(POD.key(answer.namespace, answer.name))
        if end is None or not answer.spans(end.revision.revision):
            return
        before, found = end.revision.before(POD), self._sets.get(end.set_uid)
        if before is None or found is None or answer.namespace in self._ending:
            return
        if condition_is(before.status.conditions, "DisruptionTarget"):
            return
        self.checked += 1
        visible, replicas = found.visible(end.revision.time, self.served_time), min(found.replicas.values())
        if visible <= replicas:
            yield self.violation(
                f"the controllers deleted a pod of {found.newest.subject}, which exists and had {visible} "
                f"pods for {replicas} replicas",
                found.newest,
                end.revision,
            )


def _active_owner(pod: core.Pod) -> str | None:
    """Return the uid of the controller of an active pod; None for another pod."""
    owner = controller_of(pod)
    if owner is None or is_terminal(pod) or is_terminating(pod):
        return None
    return owner.uid
