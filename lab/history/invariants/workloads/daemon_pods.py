"""A DaemonSet never has more pods on a node than its surge allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.generations import drop_read
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.invariants.workloads.replicas import largest_batch
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import DAEMON_SET, EVENT, LEASE, POD
from nominee.machinery.api.objects import ObjectKey, controller_of, is_terminating, key_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.scheduling.daemons import target_node

_CONTROLLERS: Final = "kube-controller-manager"
_EXPECTATION_SECONDS: Final = 300.0
"""A controller that does not see for so long what it created may create it again."""


def _pods_max(daemon_set: apps.DaemonSet) -> int:
    """Return how many pods a node may have: a second one with a surge, also of some percent."""
    strategy = daemon_set.spec.updateStrategy
    surge = strategy.rollingUpdate.maxSurge
    return 2 if strategy.type == "RollingUpdate" and (surge.intVal or surge.strVal not in ("", "0%")) else 1


@dataclass(slots=True)
class _Set:
    """A DaemonSet: its limit by generation, as its controller may read it, and its active pods by uid."""

    newest: Revision
    limits: dict[int, int] = field(default_factory=dict)
    pods: dict[str, tuple[str, Revision]] = field(default_factory=dict)

    def follow(self, daemon_set: apps.DaemonSet, revision: Revision) -> None:
        """Note a version; the controller has acted on the observedGeneration, and on no older one since."""
        self.newest = revision
        self.limits[daemon_set.metadata.generation] = _pods_max(daemon_set)
        drop_read(self.limits, daemon_set.status.observedGeneration)


class DaemonPods(Checker):
    """Counts the active pods of a DaemonSet on the node for which a pod of it is created.

    Its controller creates no pod while its cache may lack one that it has created (expectations), and none
    beside another one but for a surge. Creations whose answers were lost may be repeated: those of one batch.
    A creation with an event SuccessfulCreate had its answer. Adopted and released pods do not count.
    Source: kube-controller-manager 1.36, pkg/controller/daemon.
    """

    about = Invariant(
        name="daemon-pods-are-created-once",
        description="A DaemonSet never gets more active pods on a node than one, or two with a maxSurge.",
        checks="pods that were created for a DaemonSet",
        exceptions={
            "answers-lost": "the pods too many are no more than one batch of creations, whose answers may "
            "have been lost, and the failed creations that events report",
            "new-leader": "another controller manager became the leader shortly before; a write of the "
            "former leader may have been under way",
            "stale-start": "WatchListClient is off: a controller manager that was restarted may begin "
            "with an older state",
        },
    )
    kinds = frozenset({DAEMON_SET, POD, LEASE, EVENT})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._sets: dict[str, _Set] = {}
        self._leaders = Leaders(_CONTROLLERS)
        self._answered: set[ObjectKey] = set()
        self._excused: list[tuple[Violation, frozenset[ObjectKey]]] = []
        self._failures: dict[str, tuple[ObjectKey, int]] = {}
        """The failed creations of sets, as each event counts them, by its key."""
        self._doubtful: list[tuple[Violation, ObjectKey, int]] = []
        """More pods than a batch too many, and how many failures of their set they take."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a set, a leader or a pod, and check a creation."""
        if revision.kind is DAEMON_SET:
            before, daemon_set = revision.before(DAEMON_SET), revision.after(DAEMON_SET)
            if before is not None and (daemon_set is None or daemon_set.metadata.uid != before.metadata.uid):
                self._sets.pop(before.metadata.uid, None)
            if daemon_set is not None:
                self._sets.setdefault(daemon_set.metadata.uid, _Set(revision)).follow(daemon_set, revision)
        elif revision.kind is LEASE:
            self._leaders.observe(revision)
        elif revision.kind is EVENT:
            event = revision.after(EVENT)
            about = event.involvedObject.kind if event is not None else ""
            if event is not None and about == "DaemonSet" and event.reason == "FailedCreate":
                owner = ObjectKey(event.involvedObject.namespace, event.involvedObject.name)
                self._failures[revision.key] = owner, max(event.count, event.series.count, 1)
            elif event is not None and about == "DaemonSet" and event.reason == "SuccessfulCreate":
                name = event.message.rpartition(": ")[2]  # "Created pod: agent-x", also among similar ones
                self._answered.add(ObjectKey(event.involvedObject.namespace, name))
        else:
            self._observe_pod(revision)
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Yield creations that were taken for repeated ones, though they had their answers."""
        for violation, owner, needed in self._doubtful:
            if sum(count for of, count in self._failures.values() if of == owner) < needed:
                yield violation
            else:
                self.allow("answers-lost")
        for violation, pods in self._excused:
            if pods <= self._answered and "controllers" in self.settings.lists_newest:
                yield violation

    def _observe_pod(self, revision: Revision) -> None:
        pod, ended = revision.after(POD), ended_pod(revision)
        if ended is not None:
            self._forget(ended)
        if pod is None:
            return
        before = same_pod_before(revision)
        if before is not None and controller_of(before) != controller_of(pod):
            self._forget(before)
        if is_terminal(pod) or is_terminating(pod):
            self._forget(pod)
        elif before is None:
            found, node = self._set_of(pod), target_node(pod)
            if found is not None and node:
                found.pods[pod.metadata.uid] = (node, revision)
                if not revision.is_state:
                    self._check(found, node, revision)

    def _set_of(self, pod: core.Pod) -> _Set | None:
        owner = controller_of(pod)
        return self._sets.get(owner.uid) if owner is not None else None

    def _forget(self, pod: core.Pod) -> None:
        found = self._set_of(pod)
        if found is not None:
            found.pods.pop(pod.metadata.uid, None)
        if not any(key_of(pod) in pods for _, pods in self._excused):
            self._answered.discard(key_of(pod))

    def _check(self, found: _Set, node: str, revision: Revision) -> None:
        self.checked += 1
        most = max(found.limits.values(), default=1)
        by_node = Counter(on for on, _ in found.pods.values())
        if by_node[node] <= most:
            return
        here = [each for on, each in found.pods.values() if on == node]
        violation = self.violation(
            f"{found.newest.subject} got {len(here)} pods for the node {node}, and may have {most}",
            found.newest,
            *here,
        )
        excess = sum(count - most for count in by_node.values() if count > most)
        if self._leaders.changed_before(revision.time):
            self.allow("new-leader")
        elif excess <= (batch := largest_batch(len(by_node))):
            self.allow("answers-lost")
            if revision.time - min(each.time for each in here) < _EXPECTATION_SECONDS:
                names = frozenset(ObjectKey(each.namespace, each.name) for each in here)
                self._excused.append((violation, names))
        elif "controllers" not in self.settings.lists_newest:
            self.allow("stale-start")
        else:
            owner = ObjectKey(found.newest.namespace, found.newest.name)
            self._doubtful.append((violation, owner, excess - batch))
