"""PodTopologySpread: spread a workload's pods over topology domains. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cachetools import LRUCache
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import SelectorError
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
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
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraint, Defaults, Reader
from nominee.scheduler.plugins.pod_topology_spread.counts import HardState, Inclusion, SoftState

_HARD = "PreFilterPodTopologySpread"
_SOFT = "PreScorePodTopologySpread"
_MISMATCH = "node(s) didn't match pod topology spread constraints"
KNOWN_MAX = 8192  # pods whose constraints are kept as read: hints ask for them with every event


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Arguments: `defaultingType` (System, List), `defaultConstraints`."""

    name = "PodTopologySpread"
    _skewed = Status(Code.Unschedulable, (_MISMATCH,), name)
    _unlabelled = Status(Code.UnschedulableAndUnresolvable, (f"{_MISMATCH} (missing required label)",), name)

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        self._comparison = handle.gates.enabled("TaintTolerationComparisonOperators")
        self._reader = Reader.of(handle)
        self._defaults = Defaults.from_args(args, handle)
        self._known: LRUCache[tuple[str, str], tuple[PodInfo, tuple[Constraint, ...]]] = LRUCache(KNOWN_MAX)

    def _constraints(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
        """Return the pod's own constraints if it has any, else the default ones.

        Raises:
            SelectorError: a constraint's selector is invalid.
        """
        own = pod.pod.spec.topologySpreadConstraints
        if not own:
            return self._defaults.of(pod, action)
        key = (pod.uid, action)
        known = self._known.get(key)
        if known is None or known[0] is not pod:
            known = self._known[key] = (pod, self._reader.read(own, pod.labels, action))
        return known[1]

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        try:
            constraints = self._constraints(pod, HARD)
        except SelectorError as error:
            text = f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}"
            return None, Status(Code.Error, (text,), self.name, error)
        if not constraints:
            return None, Status(Code.Skip)
        inclusion = Inclusion.of(pod, comparison=self._comparison)
        state.write(_HARD, HardState.count(constraints, pod, snapshot, inclusion))
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        counted: HardState = state.read(_HARD)
        counted.add(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        counted: HardState = state.read(_HARD)
        counted.add(pod, removed, node, -1)
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        counted: HardState = state.read(_HARD)
        for domains in counted.domains:
            value = node.labels.get(domains.constraint.key)
            if value is None:
                return self._unlabelled
            if not domains.allows(value):
                return self._skewed
        return None

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        counted: HardState = state.read(_HARD)
        masks = []
        for domains in counted.domains:
            labelled, with_room = domains.mask(rows)
            masks.append(with_room if labelled is None else with_room & labelled)
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        counted: HardState = state.read(_HARD)
        index = np.zeros(len(rows), dtype=np.intp)
        undecided = np.ones(len(rows), dtype=np.bool_)
        for domains in counted.domains:
            labelled, with_room = domains.mask(rows)
            if labelled is not None:
                index[undecided & ~labelled] = 1
                undecided &= labelled
            undecided &= with_room
        statuses = (self._skewed, self._unlabelled)
        used = np.unique(index)
        if len(used) == 1:
            return (statuses[int(used[0])],), np.zeros(len(rows), dtype=np.intp)
        return statuses, index

    # Score: the fewer matching pods in the node's domains, the better

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        try:
            constraints = self._constraints(pod, SOFT)
        except SelectorError as error:
            text = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}"
            return Status(Code.Error, (text,), self.name, error)
        if not constraints:
            return Status(Code.Skip)
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        # The system's own defaults spread over hosts even where there are no zones.
        all_labels = bool(pod.pod.spec.topologySpreadConstraints) or not self._defaults.system
        inclusion = Inclusion.of(pod, comparison=self._comparison)
        state.write(
            _SOFT, SoftState.count(constraints, pod, snapshot, rows, inclusion, all_labels=all_labels)
        )
        return None

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        counted: SoftState = state.read(_SOFT)
        costs = np.zeros(len(rows), dtype=np.float64)
        for domains in counted.domains:
            costs += domains.costs(rows)
        scores = _rounded(costs)
        if counted.ignored is not None:
            scores[counted.ignored] = 0
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scale the lowest cost to 100; nodes that lack a label get 0."""
        counted: SoftState = state.read(_SOFT)
        taken = scores if counted.ignored is None else scores[~counted.ignored]
        highest = int(taken.max()) if len(taken) else 0
        if highest == 0:
            normal = np.full_like(scores, MAX_NODE_SCORE)
        else:
            normal = MAX_NODE_SCORE * (highest + int(taken.min()) - scores) // highest
        if counted.ignored is not None:
            normal[counted.ignored] = 0
        return normal

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        on_pods = ActionType.Add | ActionType.UpdatePodLabel | ActionType.Delete
        if self._handle.gates.enabled("SchedulerQueueingHints"):
            on_pods |= ActionType.UpdatePodToleration  # of the pod itself, where taints are honoured
        on_nodes = (
            ActionType.Add | ActionType.Delete | ActionType.UpdateNodeLabel | ActionType.UpdateNodeTaint
        )
        return (
            on(EventResource.Pod, on_pods, self._after_pod_change),
            on(EventResource.Node, on_nodes, self._after_node_change),
        )

    def _after_pod_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Pod, old, new)
        changed = [each for each in (old, new) if isinstance(each, core.Pod)]
        if not all(_concerns(each, pod) for each in changed):
            return QueueingHint.Skip
        constraints = self._constraints(pod, HARD)
        if isinstance(old, core.Pod) and isinstance(new, core.Pod):
            tolerates_other = list(old.spec.tolerations) != list(new.spec.tolerations)
            if new.metadata.uid == pod.uid and tolerates_other and any(c.honors_taints for c in constraints):
                return QueueingHint.Queue
            before, after = old.metadata.labels, new.metadata.labels
            useful = any(c.selector.matches(before) != c.selector.matches(after) for c in constraints)
        else:
            useful = any(c.selector.matches(changed[0].metadata.labels) for c in constraints)
        return QueueingHint.Queue if useful else QueueingHint.Skip

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Node, old, new)
        keys = [constraint.key for constraint in self._constraints(pod, HARD)]
        counted = isinstance(old, core.Node) and all(key in old.metadata.labels for key in keys)
        counts = isinstance(new, core.Node) and all(key in new.metadata.labels for key in keys)
        if isinstance(old, core.Node) and isinstance(new, core.Node):
            useful = counted != counts or (counts and _moved(old, new, keys))
        else:
            useful = counted or counts
        return QueueingHint.Queue if useful else QueueingHint.Skip


def _rounded(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round to the nearest integer, halves up; costs are not negative."""
    whole = np.floor(costs)
    rounded: NDArray[np.int64] = (whole + (costs - whole >= 0.5)).astype(np.int64)
    return rounded


def _concerns(changed: core.Pod, pod: PodInfo) -> bool:
    """Return whether the pod itself has changed, or one that takes a place on a node beside it."""
    metadata = changed.metadata
    if metadata.uid == pod.uid:
        return True
    placed = changed.spec.nodeName or changed.status.nominatedNodeName
    return bool(placed) and metadata.namespace == pod.namespace


def _moved(old: core.Node, new: core.Node, keys: Sequence[str]) -> bool:
    """Return whether the node is in other domains now, or has other taints."""
    if any(old.metadata.labels[key] != new.metadata.labels[key] for key in keys):
        return True
    return list(old.spec.taints) != list(new.spec.taints)
