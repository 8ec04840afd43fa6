"""Count the victims of preemption without which the preemptor would have fit, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_pending, is_terminal, same_pod_before
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX, is_marked, preemptor_uid
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import (
    PODS,
    Resources,
    covers,
    is_resize_deferred,
    node_allocatable,
    pod_requests,
    subtract,
)
from nominee.machinery.scheduling.priority import pod_priority


@dataclass(frozen=True, slots=True)
class _Victim:
    """A marked pod: its node and its requests."""

    node: str
    priority: int
    requests: Resources


@dataclass(slots=True)
class _Preemptor:
    """A pod that waited for room, and got it.

    `free` is what its node had left then beside all pods that were not marked as victims.
    """

    node: str
    free: Resources
    victims: list[_Victim] = field(default_factory=list)


class RedundantVictims(Checker):
    """Gives each victim its place back when the preemptor has got its node, the most important one first.

    A victim is redundant if it would have fit beside the preemptor by its requests, or was evicted from
    another node than the preemptor's. What else can prevent a pod from running on a node (ports, affinity,
    topology spread, volumes) is not considered: a victim that is evicted for these is counted as redundant.
    """

    about = Invariant(
        name="redundant-victims",
        description="Victims without which the preemptor would have fit are counted; they are no violation.",
        checks="victims of preemptors that got their node",
        counts={
            "redundant": "victims that would have fit beside the preemptor, by requests",
            "on-other-nodes": "victims on other nodes than the one that the preemptor got",
        },
    )
    kinds = frozenset({POD, NODE, EVENT})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._allocatable: dict[str, Resources] = {}
        self._pods_on: dict[str, dict[str, core.Pod]] = {}
        self._waiting: set[str] = set()
        self._marked: LRUCache[str, _Victim] = LRUCache(PODS_MAX)
        self._served: LRUCache[str, _Preemptor] = LRUCache(PODS_MAX)
        self._early: LRUCache[str, list[_Victim]] = LRUCache(PODS_MAX)

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a node or pod, or which pod was evicted for which."""
        if revision.kind is NODE:
            node = revision.after(NODE)
            if node is None:
                self._allocatable.pop(revision.name, None)
            else:
                self._allocatable[revision.name] = node_allocatable(node)
        elif revision.kind is EVENT:
            event = revision.after(EVENT)
            if event is not None:
                self._observe_event(event)
        else:
            self._observe_pod(revision)
        yield from ()

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._pods_on.get(ended.spec.nodeName, {}).pop(ended.metadata.uid, None)
            self._waiting.discard(ended.metadata.uid)
        if pod is None:
            return
        before, node, uid = same_pod_before(revision), pod.spec.nodeName, pod.metadata.uid
        if node:
            self._pods_on.setdefault(node, {})[uid] = pod
        if is_marked(pod) and not (before is not None and is_marked(before)):
            self._marked[uid] = _Victim(node, pod_priority(pod), _requests(pod))
        if is_pending(pod) or is_resize_deferred(pod):
            self._waiting.add(uid)
        else:
            self._waiting.discard(uid)
        if before is not None and not revision.is_state and _got_room(before, pod):
            self._settle(self._served.pop(uid, None))  # of its binding, before its resize
            self._served[uid] = _Preemptor(node, self._free(node), self._early.pop(uid, []))

    def _free(self, node: str) -> Resources:
        """Return the resources of a node that are free beside its unmarked pods, with the preemptor."""
        free = dict(self._allocatable.get(node, {}))
        for pod in self._pods_on.get(node, {}).values():
            if not is_terminal(pod) and not is_marked(pod):
                free = subtract(free, _requests(pod))
        return free

    def _observe_event(self, event: core.Event) -> None:
        preemptor = preemptor_uid(event)
        victim = self._marked.pop(event.involvedObject.uid, None) if preemptor else None
        if victim is None:
            return
        served = None if preemptor in self._waiting else self._served.get(preemptor)
        if served is not None:
            served.victims.append(victim)
        else:
            self._early.setdefault(preemptor, []).append(victim)

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Count."""
        for preemptor in self._served.values():
            self._settle(preemptor)
        yield from ()

    def _settle(self, preemptor: _Preemptor | None) -> None:
        """Count the victims of one preemption."""
        if preemptor is None:
            return
        free = preemptor.free
        for victim in sorted(preemptor.victims, key=lambda each: -each.priority):
            self.checked += 1
            if victim.node != preemptor.node:
                self.count("on-other-nodes")
            elif covers(free, victim.requests):
                self.count("redundant")
                free = subtract(free, victim.requests)


def _got_room(before: core.Pod, pod: core.Pod) -> bool:
    """Return whether the pod was bound, or its deferred resize allocated."""
    was_bound = bool(before.spec.nodeName)
    return bool(pod.spec.nodeName) and (
        not was_bound or (is_resize_deferred(before) and not is_resize_deferred(pod))
    )


def _requests(pod: core.Pod) -> Resources:
    return {**pod_requests(pod, use_status=True), PODS: 1}
