"""Count the affinity terms of pods that are on nodes: which there are, and how often on which node.

Terms are grouped, since the pods of one workload have the same ones, and found by the namespace of the
pending pod. So a cycle's cost depends on the terms that concern the pod, not on the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from nominee.scheduler.framework.affinity_terms import AffinityTerm, PodTerms
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.inter_pod_affinity.change_follower import ChangeFollower
from nominee.scheduler.plugins.inter_pod_affinity.node_counts import NodeCounts

HARD: Final = 0  # in place of the weight of a required affinity term, which the profile's arguments give

K = TypeVar("K")
_Seen = dict[str, PodTerms]
_Place = tuple[str, tuple[str, str] | None]  # namespace, label
_NOTHING: Final[Mapping[Any, NodeCounts]] = {}


class _Group(Generic[K]):
    """Terms of one sort, with how often each node has them.

    Terms without a namespace selector are kept under each of their namespaces and one label that they
    require.
    """

    def __init__(self) -> None:
        self._places: dict[_Place | None, dict[tuple[K, AffinityTerm], NodeCounts]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, snapshot: Snapshot, name: str, key: tuple[K, AffinityTerm], change: int) -> None:
        """Count the term on the node once more, or once less."""
        counts: NodeCounts | None = None
        for place in _places_of(key[1]):
            there = self._places.setdefault(place, {})
            if counts is None:
                counts = there.get(key) or NodeCounts()
                counts.add(snapshot, name, change)
            if counts.by_node:
                there[key] = counts
                continue
            there.pop(key, None)
            if not there:
                del self._places[place]

    def about(
        self, pod: PodInfo, namespace_labels: Mapping[str, str]
    ) -> Iterator[tuple[K, AffinityTerm, NodeCounts]]:
        """Yield the terms that match the pod."""
        namespace, labels = pod.namespace, pod.labels
        for label in (None, *labels.items()):
            for (key, term), counts in self._places.get((namespace, label), _NOTHING).items():
                if term.selects(labels):
                    yield key, term, counts
        for (key, term), counts in self._places.get(None, _NOTHING).items():
            if term.matches(namespace, labels, namespace_labels):
                yield key, term, counts


def _places_of(term: AffinityTerm) -> Iterator[_Place | None]:
    if not term.namespace_selector.selects_nothing:
        yield None
        return
    for namespace in term.namespaces:
        yield namespace, term.one_label


class ExistingTerms(ChangeFollower):
    """A companion of a snapshot; `follow` it before use.

    `anti` has the required anti-affinity terms, `scored` the ones that count in scores, by weight: `HARD`, or
    the weight, negative for anti-affinity.
    """

    def _reset(self) -> None:
        self.anti: _Group[None] = _Group()
        self.scored: _Group[int] = _Group()
        self._seen: dict[str, _Seen] = {}  # by node: terms that have been counted, by the pod's uid

    def _follow_node(self, snapshot: Snapshot, name: str, node: NodeInfo | None) -> None:
        present: _Seen = {}
        if node is not None:
            for uid, pod in node.pods.items():
                terms = pod.pod_terms
                if terms is not None:
                    present[uid] = terms
        former = self._seen.get(name, {})
        if not present and not former:
            return
        for _, terms in former.items() - present.items():
            self._count(snapshot, name, terms, -1)
        for _, terms in present.items() - former.items():
            self._count(snapshot, name, terms, 1)
        if present:
            self._seen[name] = present
        else:
            del self._seen[name]

    def _count(self, snapshot: Snapshot, name: str, terms: PodTerms, change: int) -> None:
        for term in terms.required_anti:
            self.anti.add(snapshot, name, (None, term), change)
        for term in terms.required:
            self.scored.add(snapshot, name, (HARD, term), change)
        for weight, term in terms.preferred:
            self.scored.add(snapshot, name, (weight, term), change)
        for weight, term in terms.preferred_anti:
            self.scored.add(snapshot, name, (-weight, term), change)
