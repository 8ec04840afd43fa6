"""NodeDeclaredFeatures: a pod that needs a feature goes to nodes that declare it.

Source: KEP-5328; kube-scheduler 1.36, NodeDeclaredFeatures and component-helpers' nodedeclaredfeatures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core
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
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Rows,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo

_NEEDED = "PreFilterNodeDeclaredFeatures"


def _restarts_all_containers(spec: core.PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in itertools.chain(spec.containers, spec.initContainers)
        for rule in container.restartPolicyRules
    )


def _has_own_users_on_host_network(spec: core.PodSpec) -> bool:
    return spec.hostNetwork and spec.HasField("hostUsers") and not spec.hostUsers


# Features that matter to scheduling; others concern updates of running pods only.
_NEEDED_BY: Final[Mapping[str, Callable[[core.PodSpec], bool]]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_own_users_on_host_network,
}


def needed_features(spec: core.PodSpec) -> frozenset[str]:
    """Return the features that a node must have for the pod to start there."""
    return frozenset(name for name, needs in _NEEDED_BY.items() if needs(spec))


def _declared(info: NodeInfo) -> frozenset[str]:
    return frozenset() if info.node is None else frozenset(info.node.status.declaredFeatures)


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes that do not declare the features that the pod needs."""

    name = "NodeDeclaredFeatures"
    looks_at_pods = False
    only_rejection = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) didn't match Pod's required features",), name
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._enabled = handle.gates.enabled("NodeDeclaredFeatures")

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        needed = needed_features(pod.pod.spec) if self._enabled else frozenset()
        if not needed:
            return None, Status(Code.Skip)
        state.write(_NEEDED, needed)
        return None, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        needed: frozenset[str] = state.read(_NEEDED)
        return None if needed <= _declared(node) else self.only_rejection

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        needed: frozenset[str] = state.read(_NEEDED)
        return snapshot.column("declared features", _declared).mask(needed.issubset, rows)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._enabled:
            return ()
        return (
            on(
                EventResource.Node,
                ActionType.Add | ActionType.UpdateNodeDeclaredFeature,
                self._after_node_change,
            ),
            on(EventResource.Pod, ActionType.Update, self._after_pod_update),
        )

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Queue the pod after any change: whether the node now has the features is not checked."""
        old, new = expect(core.Node, old, new)
        if isinstance(old, core.Node) and isinstance(new, core.Node):
            same = old.status.declaredFeatures == new.status.declaredFeatures
            return QueueingHint.Skip if same else QueueingHint.Queue
        return QueueingHint.Queue

    def _after_pod_update(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Queue the pod when it does not need a feature any more."""
        old, new = expect(core.Pod, old, new)
        if not isinstance(old, core.Pod) or not isinstance(new, core.Pod) or new.metadata.uid != pod.uid:
            return QueueingHint.Skip
        same = needed_features(old.spec) == needed_features(new.spec)
        return QueueingHint.Skip if same else QueueingHint.Queue
