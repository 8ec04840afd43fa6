"""InterPodAffinity: place a pod near the pods that its affinity terms match, and away from others.

Source: kube-scheduler 1.36. Required terms of the pod itself and required anti-affinity of pods on nodes
filter; preferred terms of both, and required affinity of pods on nodes, score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nominee.machinery.api import kinds
from nominee.machinery.features.gates import Version
from nominee.scheduler.framework.affinity_terms import AffinityTerm, PodTerms
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    on,
)
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    MAX_NODE_SCORE,
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Rows,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.inter_pod_affinity.existing_terms import HARD, ExistingTerms
from nominee.scheduler.plugins.inter_pod_affinity.hints import after_node_change, after_pod_change
from nominee.scheduler.plugins.inter_pod_affinity.node_counts import NodeCounts
from nominee.scheduler.plugins.inter_pod_affinity.pod_queries import PodQueries, Queries, Query, match_all
from nominee.scheduler.plugins.inter_pod_affinity.topology_counts import TopologyCounts

HARD_WEIGHT_DEFAULT: Final = 1
HARD_WEIGHT_MAX: Final = 100
NAMESPACE_SELECTOR_STAYS: Final = Version(1, 34)  # since then; see `Query.resolve`

_FILTER: Final = "PreFilterInterPodAffinity"
_SCORE: Final = "PreScoreInterPodAffinity"
_NO_TERMS: Final = PodTerms()
_NO_LABELS: Final[Mapping[str, str]] = {}

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class _FilterState:
    """The state of Filter. Counts are of pods, or for `existing` of terms, by topology domain."""

    snapshot: Snapshot
    pod: PodInfo
    namespace_labels: Mapping[str, str]
    required: Queries
    required_anti: Queries
    affinity: TopologyCounts  # pods that all required affinity terms match
    anti_affinity: TopologyCounts  # pods that a required anti-affinity term matches
    existing: TopologyCounts  # required anti-affinity terms of pods on nodes that match this pod

    def clone(self) -> _FilterState:
        return _FilterState(
            self.snapshot,
            self.pod,
            self.namespace_labels,
            self.required,
            self.required_anti,
            self.affinity.clone() if self.required else self.affinity,  # without terms it never changes
            self.anti_affinity.clone() if self.required_anti else self.anti_affinity,
            self.existing.clone(),
        )

    @property
    def first_of_its_kind(self) -> bool:
        """Return whether no pod matches the pod's affinity but itself: it may be the first."""
        return not self.affinity.domains and match_all(self.required, self.pod)

    def update(self, other: PodInfo, node: NodeInfo, change: int) -> None:
        """Count a pod that comes to the node (1) or leaves it (-1)."""
        labels = node.labels
        terms = other.pod_terms
        for term in () if terms is None else terms.required_anti:
            if term.matches(self.pod.namespace, self.pod.labels, self.namespace_labels):
                self.existing.add(term.topology_key, labels.get(term.topology_key), change)
        if self.required and match_all(self.required, other):
            for query in self.required:
                key = query.term.topology_key
                self.affinity.add(key, labels.get(key), change)
        for query in self.required_anti:
            if query.matches(other):
                key = query.term.topology_key
                self.anti_affinity.add(key, labels.get(key), change)


class _Extensions:
    """Keeps the state right while pods come and go in a simulation."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        found: _FilterState = state.read(_FILTER)
        found.update(added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        found: _FilterState = state.read(_FILTER)
        found.update(removed, node, -1)
        return None


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Arguments: `hardPodAffinityWeight` (0 to 100, 1), `ignorePreferredTermsOfExistingPods` (false)."""

    name = "InterPodAffinity"
    _far = Status(Code.UnschedulableAndUnresolvable, ("node(s) didn't match pod affinity rules",), name)
    _near = Status(Code.Unschedulable, ("node(s) didn't match pod anti-affinity rules",), name)
    _unwelcome = Status(
        Code.Unschedulable, ("node(s) didn't satisfy existing pods anti-affinity rules",), name
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._hard_weight = _read_weight(args)
        ignores = args.get("ignorePreferredTermsOfExistingPods")
        if not isinstance(ignores, bool | None):
            raise ArgumentError("ignorePreferredTermsOfExistingPods", "expected a boolean")
        self._ignores_existing = bool(ignores)
        self._namespaces = handle.lister(kinds.NAMESPACE)
        self._keeps_selector = handle.version >= NAMESPACE_SELECTOR_STAYS

    # Looking up

    def _queries(self, terms: Sequence[AffinityTerm]) -> Queries:
        return tuple(
            Query.resolve(
                term,
                () if term.namespace_selector.selects_nothing else self._namespaces.list(),
                keeps_selector=self._keeps_selector,
            )
            for term in terms
        )

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; none when it does not exist."""
        found = self._namespaces.get(namespace)
        return _NO_LABELS if found is None else found.metadata.labels

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        terms = pod.pod_terms or _NO_TERMS
        if terms.errors:
            return None, Status(Code.UnschedulableAndUnresolvable, (f"parsing pod: {terms.error}",))
        present = snapshot.companion(ExistingTerms)
        present.follow(snapshot)
        if not present.anti and not terms.required and not terms.required_anti:
            return None, Status(Code.Skip)
        namespace_labels = self._labels_of(pod.namespace)
        existing = TopologyCounts(
            snapshot,
            ((term.topology_key, 1, counts) for _, term, counts in present.anti.about(pod, namespace_labels)),
        )
        if not existing.domains and not terms.required and not terms.required_anti:
            return None, Status(Code.Skip)
        required, required_anti = self._queries(terms.required), self._queries(terms.required_anti)
        found = _FilterState(
            snapshot,
            pod,
            namespace_labels,
            required,
            required_anti,
            _count_all(snapshot, required),
            TopologyCounts(snapshot, _count_each(snapshot, required_anti, 1)),
            existing,
        )
        state.write(_FILTER, found)
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return _Extensions()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        found: _FilterState = state.read(_FILTER)
        if not _is_near_matches(found, node):
            return self._far
        labels = node.labels
        for query in found.required_anti:
            value = labels.get(query.term.topology_key)
            if value is not None and found.anti_affinity.get(query.term.topology_key, value) > 0:
                return self._near
        if found.existing.domains:
            for key in found.existing.keys:
                value = labels.get(key)
                if value is not None and found.existing.get(key, value) > 0:
                    return self._unwelcome
        return None

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        found: _FilterState = state.read(_FILTER)
        if found.snapshot is not snapshot:
            return super().filter_all(state, pod, snapshot, rows)
        masks = [mask for mask in self._masks(found, rows) if mask is not None]
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        found: _FilterState = state.read(_FILTER)
        if found.snapshot is not snapshot:
            return super().explain_all(state, pod, snapshot, rows)
        near, apart, _ = self._masks(found, rows)
        index = np.full(len(rows), 2, dtype=np.intp)
        if apart is not None:
            index[~apart] = 1
        if near is not None:
            index[~near] = 0
        return (self._far, self._near, self._unwelcome), index

    def _masks(self, found: _FilterState, rows: Rows) -> tuple[Mask | None, Mask | None, Mask | None]:
        """Return where affinity, anti-affinity and that of existing pods are satisfied; None: everywhere."""
        snapshot = found.snapshot
        near: Mask | None = None
        beginning = bool(found.required) and found.first_of_its_kind
        for key in {query.term.topology_key for query in found.required}:
            if beginning:
                column = snapshot.label_column(key)
                mask: Mask = column.ids[rows] != column.id_of(None)
            else:
                mask = found.affinity.by_row(snapshot, key, rows) > 0
            near = mask if near is None else near & mask
        anti_keys = {query.term.topology_key for query in found.required_anti}
        apart = _none_in(found.anti_affinity, snapshot, anti_keys, rows)
        welcome = _none_in(found.existing, snapshot, found.existing.keys, rows)
        return near, apart, welcome

    # Score

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        terms = pod.pod_terms or _NO_TERMS
        own = bool(terms.preferred or terms.preferred_anti)
        if self._ignores_existing and not own:
            return Status(Code.Skip)
        present = snapshot.companion(ExistingTerms)
        present.follow(snapshot)
        if not own and not present.scored:
            return Status(Code.Skip)
        counts = TopologyCounts(snapshot, self._contributions(pod, terms, present, snapshot))
        if not counts.touched:
            return Status(Code.Skip)
        state.write(_SCORE, counts)
        return None

    def _contributions(
        self, pod: PodInfo, terms: PodTerms, present: ExistingTerms, snapshot: Snapshot
    ) -> Iterator[tuple[str, int, NodeCounts]]:
        for weight, term in terms.preferred:
            yield from _count_each(snapshot, self._queries((term,)), weight)
        for weight, term in terms.preferred_anti:
            yield from _count_each(snapshot, self._queries((term,)), -weight)
        if not present.scored:
            return
        for weight, term, counts in present.scored.about(pod, self._labels_of(pod.namespace)):
            effective = self._hard_weight if weight == HARD else weight
            if effective:
                yield term.topology_key, effective, counts

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        counts: TopologyCounts = state.read(_SCORE)
        scores = np.zeros(len(rows), dtype=np.int64)
        for key in counts.keys:
            scores += counts.by_row(snapshot, key, rows)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scale the lowest to 0 and the highest to 100; all 0 if they are equal."""
        if not len(scores):
            return scores
        low = int(scores.min())
        spread = int(scores.max()) - low
        if not spread:
            return np.zeros_like(scores)
        # In this order, as upstream calculates it: the last bit decides where a score is cut off.
        return (float(MAX_NODE_SCORE) * ((scores - low) / float(spread))).astype(np.int64)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pods = ActionType.Add | ActionType.UpdatePodLabel | ActionType.Delete
        nodes = ActionType.Add | ActionType.UpdateNodeLabel
        return (
            on(EventResource.Pod, pods, self._after_pod_change),
            on(EventResource.Node, nodes, self._after_node_change),
        )

    _after_pod_change = staticmethod(after_pod_change)
    _after_node_change = staticmethod(after_node_change)


def _read_weight(args: Mapping[str, Any]) -> int:
    weight = args.get("hardPodAffinityWeight")
    if weight is None:
        return HARD_WEIGHT_DEFAULT
    if not isinstance(weight, int) or isinstance(weight, bool):
        raise ArgumentError("hardPodAffinityWeight", "expected an integer")
    if not 0 <= weight <= HARD_WEIGHT_MAX:
        text = f"Invalid value: {weight}: not in valid range [0-{HARD_WEIGHT_MAX}]"
        raise ArgumentError("hardPodAffinityWeight", text)
    return weight


def _count_all(snapshot: Snapshot, queries: Queries) -> TopologyCounts:
    """Count the pods that match all the terms, in the topologies of each term."""
    if not queries:
        return TopologyCounts()
    by_node = snapshot.companion(PodQueries).count(snapshot, queries)
    return TopologyCounts(snapshot, ((query.term.topology_key, 1, by_node) for query in queries))


def _count_each(snapshot: Snapshot, queries: Queries, weight: int) -> Iterator[tuple[str, int, NodeCounts]]:
    """Count the pods that match each term, in its topology."""
    for query in queries:
        by_node = snapshot.companion(PodQueries).count(snapshot, (query,))
        yield query.term.topology_key, weight, by_node


def _is_near_matches(found: _FilterState, node: NodeInfo) -> bool:
    """Return whether each required term has, in its domain of the node, pods that match all the terms."""
    together = True
    for query in found.required:
        value = node.labels.get(query.term.topology_key)
        if value is None:
            return False
        if found.affinity.get(query.term.topology_key, value) <= 0:
            together = False
    return together or found.first_of_its_kind


def _none_in(counts: TopologyCounts, snapshot: Snapshot, keys: Any, rows: Rows) -> Mask | None:
    """Return the rows in whose domains nothing is counted; None: all of them."""
    if not counts.domains:
        return None
    free: Mask | None = None
    for key in keys:
        mask: Mask = counts.by_row(snapshot, key, rows) <= 0
        free = mask if free is None else free & mask
    return free
