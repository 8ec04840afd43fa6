"""A ReplicaSet never has more pods than replicas by creating them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.replica_sets import (
    REPLICATED,
    ReadableReplicas,
    before_and_after,
)
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, POD
from nominee.machinery.api.objects import condition_is, controller_of, is_terminating
from nominee.machinery.api.pb import core

_CONTROLLERS: Final = "kube-controller-manager"


@dataclass(slots=True)
class _Set(ReadableReplicas):
    """A ReplicaSet with the pods that were created for it."""

    pods: dict[str, Revision] = field(default_factory=dict)
    repetitions: set[str] = field(default_factory=set)
    """Those that were created while the status said that a creation had failed."""

    def is_failing(self) -> bool:
        """Return whether the status says that a creation failed: the pod may exist nevertheless."""
        _, found = before_and_after(self.newest)
        return found is not None and condition_is(found.status.conditions, "ReplicaFailure")


class Replicas(Checker):
    """Counts the active pods of each ReplicaSet when a pod is created for it.

    A controller creates no pod while its cache may lack one that it has created (expectations), so that no
    stale cache makes it create twice for one lack. Only creations whose answers were lost may be repeated:
    those of one batch at most, and each one after it that followed a failure which the set's ReplicaFailure
    reports (none of them is expected, and the cache may lack them all). Adopted pods do not count. There is
    no such rule for Deployments: their controller has no expectations, and upstream may exceed maxSurge with
    a stale cache.
    Source: kube-controller-manager 1.36, controller_utils (UIDTrackingControllerExpectations, and the batches
    of slowStartBatch).
    """

    about = Invariant(
        name="replicas-are-created-once",
        description="A ReplicaSet's controller creates no more pods than the replicas that it may have read.",
        checks="pods that were created for a ReplicaSet or ReplicationController",
        exceptions={
            "answers-lost": "the excess is no larger than one batch of creations, whose answers may have "
            "been lost, and the pods that were created while ReplicaFailure was True",
            "new-leader": "another controller manager became the leader shortly before; a write of the "
            "former leader may have been under way",
            "stale-start": "WatchListClient is off: a controller manager that was restarted may begin "
            "with an older state",
        },
    )
    kinds = frozenset({*REPLICATED, POD, LEASE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._sets: dict[str, _Set] = {}
        self._leaders = Leaders(_CONTROLLERS)

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a set, a leader or a pod, and check a creation."""
        if revision.kind in REPLICATED:
            self._observe_set(revision)
        elif revision.kind is LEASE:
            self._leaders.observe(revision)
        else:
            yield from self._observe_pod(revision)

    def _observe_set(self, revision: Revision) -> None:
        before, replica_set = before_and_after(revision)
        if before is not None and (replica_set is None or replica_set.metadata.uid != before.metadata.uid):
            self._sets.pop(before.metadata.uid, None)
        if replica_set is not None:
            self._sets.setdefault(replica_set.metadata.uid, _Set(revision)).follow(replica_set, revision)

    def _observe_pod(self, revision: Revision) -> Iterator[Violation]:
        ended, before, pod = ended_pod(revision), same_pod_before(revision), revision.after(POD)
        if ended is not None:
            self._forget(ended)
        if pod is None:
            return
        if is_terminal(pod) or is_terminating(pod):
            self._forget(pod)
        elif before is not None:
            # A controller releases a pod that its selector does not match any more.
            if controller_of(before) != controller_of(pod):
                self._forget(before)
        else:
            found = self._set_of(pod)
            if found is not None:
                found.pods[pod.metadata.uid] = revision
                if found.is_failing():
                    found.repetitions.add(pod.metadata.uid)
                if not revision.is_state:
                    yield from self._check(found, revision)

    def _set_of(self, pod: core.Pod) -> _Set | None:
        owner = controller_of(pod)
        return self._sets.get(owner.uid) if owner is not None else None

    def _forget(self, pod: core.Pod) -> None:
        found = self._set_of(pod)
        if found is not None:
            found.pods.pop(pod.metadata.uid, None)
            found.repetitions.discard(pod.metadata.uid)

    def _check(self, found: _Set, revision: Revision) -> Iterator[Violation]:
        self.checked += 1
        replicas = max(found.replicas.values(), default=0)
        excess = len(found.pods) - replicas
        if excess <= 0:
            return
        if self._leaders.changed_before(revision.time):
            self.allow("new-leader")
        elif excess <= largest_batch(replicas) + len(found.repetitions):
            self.allow("answers-lost")
        elif "controllers" not in self.settings.lists_newest:
            self.allow("stale-start")
        else:
            yield self.violation(
                f"{found.newest.subject} of {replicas} replicas got pod number {len(found.pods)}: its "
                "controller created pods twice",
                found.newest,
                *found.pods.values(),
            )


def largest_batch(pods: int) -> int:
    """Return the size of the largest batch in which a controller creates pods: 1, 2, 4 and so on."""
    largest, size = 0, 1
    while pods > 0:
        largest = max(largest, min(size, pods))
        pods -= size
        size *= 2
    return largest
