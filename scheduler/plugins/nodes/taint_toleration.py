"""TaintToleration: keep pods off nodes whose taints they do not tolerate. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import FORBIDDING, PREFER_NO_SCHEDULE, is_tolerated
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.columns import Column
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreScorePlugin,
    Rows,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo, Taint
from nominee.scheduler.plugins.normalize import normalize_by_max

_STATE = "PreScoreTaintToleration"


def _taint_column(snapshot: Snapshot) -> Column:
    return snapshot.column("taints", lambda info: info.taints)


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Rejects nodes with taints that the pod does not tolerate, and prefers nodes without soft ones."""

    name = "TaintToleration"
    looks_at_pods = False
    only_rejection = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) had untolerated taint(s)",), "TaintToleration"
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._comparison = handle.gates.enabled("TaintTolerationComparisonOperators")

    # Filter

    def _allows(self, tolerations: Sequence[core.Toleration], taints: Sequence[Taint]) -> bool:
        for key, value, effect in taints:
            if effect in FORBIDDING:
                taint = core.Taint(key=key, value=value, effect=effect)
                if not is_tolerated(tolerations, taint, comparison=self._comparison):
                    return False
        return True

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not node.taints or self._allows(pod.pod.spec.tolerations, node.taints):
            return None
        return self.only_rejection

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        if not snapshot.tainted_count:
            return None
        tolerations = pod.pod.spec.tolerations
        return _taint_column(snapshot).mask(lambda taints: self._allows(tolerations, taints), rows)

    # Score: fewer untolerated PreferNoSchedule taints are better

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        state.write(_STATE, self._soft_tolerations(pod))
        return None

    def _soft_tolerations(self, pod: PodInfo) -> list[core.Toleration]:
        return [t for t in pod.pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

    def _intolerable(self, tolerations: Sequence[core.Toleration], taints: Sequence[Taint]) -> int:
        return sum(
            not is_tolerated(
                tolerations, core.Taint(key=key, value=value, effect=effect), comparison=self._comparison
            )
            for key, value, effect in taints
            if effect == PREFER_NO_SCHEDULE
        )

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        if not snapshot.tainted_count:
            return np.zeros(len(rows), dtype=np.int64)
        tolerations = state.get(_STATE) or self._soft_tolerations(pod)
        return _taint_column(snapshot).numbers(lambda taints: self._intolerable(tolerations, taints), rows)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return normalize_by_max(scores, reverse=True)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node_changes = ActionType.Add | ActionType.UpdateNodeTaint
        return (
            on(EventResource.Node, node_changes, self._after_node_change),
            on(EventResource.Pod, ActionType.UpdatePodToleration, self._after_toleration_change),
        )

    def _allows_node(self, pod: PodInfo, node: core.Node) -> bool:
        taints = [(t.key, t.value, t.effect) for t in node.spec.taints]
        return self._allows(pod.pod.spec.tolerations, taints)

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Node, old, new)
        was_allowed = isinstance(old, core.Node) and self._allows_node(pod, old)
        is_allowed = isinstance(new, core.Node) and self._allows_node(pod, new)
        return QueueingHint.Queue if is_allowed and not was_allowed else QueueingHint.Skip

    def _after_toleration_change(
        self, pod: PodInfo, old: Message | None, new: Message | None
    ) -> QueueingHint:
        _, new = expect(core.Pod, old, new)
        own = isinstance(new, core.Pod) and new.metadata.uid == pod.uid
        return QueueingHint.Queue if own else QueueingHint.Skip
