"""Count the pods of each node that the terms of a pending pod match, for all pods and namespaces.

The pods of one workload have the same queries one after another, so answers are kept and corrected where
the snapshot has changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.affinity_terms import AffinityTerm
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.inter_pod_affinity.node_counts import NodeCounts
from nominee.scheduler.plugins.inter_pod_affinity.pod_groups import PodGroups

ANSWERS_MAX: Final = 128  # the least recently used is dropped


@dataclass(frozen=True, slots=True)
class Query:
    """A term of a pending pod with its namespace selector resolved; no namespaces: all of them."""

    term: AffinityTerm
    namespaces: frozenset[str] | None

    @classmethod
    def resolve(
        cls, term: AffinityTerm, namespaces: Iterable[core.Namespace], *, keeps_selector: bool
    ) -> Query:
        """Return the query of a term with its namespaces looked up.

        `keeps_selector`: the selector is also applied, once more, to namespaces without labels. Upstream
        does so since 1.34 by mistake: a term whose namespace selector has only negative requirements then
        matches in all namespaces (kubernetes/kubernetes#141526).
        """
        selector = term.namespace_selector
        if selector.empty:
            return cls(term, None)
        if selector.selects_nothing:
            return cls(term, term.namespaces)
        if keeps_selector and selector.matches({}):
            return cls(term, None)
        found = (each.metadata.name for each in namespaces if selector.matches(each.metadata.labels))
        return cls(term, term.namespaces.union(found))

    def matches(self, pod: PodInfo) -> bool:
        """Return whether the query matches the pod."""
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        return self.term.selects(pod.labels)


Queries = tuple[Query, ...]


def match_all(queries: Queries, pod: PodInfo) -> bool:
    """Return whether all the queries match the pod; false without any."""
    return bool(queries) and all(query.matches(pod) for query in queries)


@dataclass(slots=True)
class _Answer:
    counts: NodeCounts = field(default_factory=NodeCounts)
    position: int = -1  # of the snapshot's changes


class PodQueries:
    """A companion of a snapshot."""

    def __init__(self) -> None:
        self._answers: LRUCache[Queries, _Answer] = LRUCache(ANSWERS_MAX)

    def count(self, snapshot: Snapshot, queries: Queries) -> NodeCounts:
        """Count the pods of each node that all the queries match.

        The result is to be read only, and until the snapshot changes.
        """
        answer = self._answers.get(queries)
        if answer is None:
            answer = self._answers[queries] = _Answer()
        self._follow(snapshot, queries, answer)
        return answer.counts

    def _follow(self, snapshot: Snapshot, queries: Queries, answer: _Answer) -> None:
        position = snapshot.changes.position
        if answer.position == position:
            return
        changed = None if answer.position < 0 else snapshot.changes.since(answer.position)
        if changed is None:
            answer.counts = _count_groups(snapshot, queries)
        else:
            for name in changed:
                there = snapshot.get(name)
                answer.counts.put(snapshot, name, 0 if there is None else _count(queries, there))
        answer.position = position


def _count_groups(snapshot: Snapshot, queries: Queries) -> NodeCounts:
    """Compute the answer to a new query."""
    groups = snapshot.companion(PodGroups)
    groups.follow(snapshot)
    found = NodeCounts()
    for group in groups.within(queries[0].namespaces, queries[0].term.one_label):
        if match_all(queries, group.example):
            for name, count in group.by_node.items():
                found.add(snapshot, name, count)
    return found


def _count(queries: Queries, node: NodeInfo) -> int:
    return sum(match_all(queries, pod) for pod in node.pods.values())
