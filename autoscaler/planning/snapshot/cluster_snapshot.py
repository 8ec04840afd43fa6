"""The cluster snapshot: nodes and pods that a simulation changes, with the scheduler's own filters. Pure.

Source: cluster-autoscaler 1.36, predicate snapshot and hinting simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from nominee.autoscaler.planning.objects.pods import unbound
from nominee.autoscaler.planning.snapshot.dynamic_resources import DynamicResources
from nominee.autoscaler.planning.snapshot.scheduling_hints import SchedulingHints
from nominee.autoscaler.planning.snapshot.template_node import TemplateNode
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.framework.runtime.profile import DEFAULT_SCHEDULER_NAME
from nominee.scheduler.framework.scheduling.simulation import Simulator
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.registry import IN_TREE, default_profile

IsAcceptable = Callable[[NodeInfo], bool]
_DYNAMIC_RESOURCES = "DynamicResources"
FIRST_BATCH = 32  # nodes that are filtered before the rest


class ClusterSnapshot:
    """Nodes ordered by name, so that equal clusters give equal results."""

    def __init__(
        self,
        nodes: Iterable[core.Node],
        *,
        gates: Gates,
        clock: Clock,
        devices: DynamicResources | None = None,
    ) -> None:
        """Create a snapshot without pods. `devices` are the cluster's, and change with the snapshot."""
        self.devices = devices or DynamicResources({})
        self._simulator = Simulator(
            default_profile(DEFAULT_SCHEDULER_NAME),
            IN_TREE,
            gates=gates,
            clock=clock,
            listers=self.devices.listers,
        )
        plugins = self._simulator.framework.reserve_plugins
        self._dynamic_resources = next(p for p in plugins if p.name == _DYNAMIC_RESOURCES)
        self._next = 0
        for node in sorted(nodes, key=lambda node: node.metadata.name):
            self._simulator.snapshot.put(NodeInfo(node.metadata.name, node))

    # Reading

    def get(self, name: str) -> NodeInfo | None:
        """Return a node, or None."""
        return self._simulator.snapshot.get(name)

    def names(self) -> list[str]:
        """Return the names of all nodes, upcoming ones included."""
        return [info.name for info in self._simulator.snapshot.nodes]

    def nodes(self) -> list[core.Node]:
        """Return all node objects, upcoming ones included."""
        return [info.node for info in self._simulator.snapshot.nodes if info.node is not None]

    def pods_on(self, name: str) -> list[core.Pod]:
        """Return the pods of a node in the order in which they were added; none if there is no such node."""
        info = self.get(name)
        return [] if info is None else [pod.pod for pod in info.pods.values()]

    def check(self, pod: PodInfo, node_name: str) -> Status | None:
        """Return why the pod does not fit the node; None if it fits."""
        return self._simulator.check(pod, node_name)

    # Changing

    def add_node(self, info: NodeInfo) -> None:
        """Add a node with its pods; a template node with its devices, too."""
        self._simulator.snapshot.add_node(info)
        if isinstance(info, TemplateNode) and (info.slices or info.claims):
            self.devices.add_node(info.slices, info.claims)
            for pod in info.pods.values():
                self.devices.reserve(pod.pod)

    def remove_node(self, name: str) -> list[core.Pod]:
        """Remove a node with its devices and pods; return the pods."""
        pods = self.pods_on(name)
        self._simulator.snapshot.remove_node(name)
        self.devices.remove_node(name)
        for pod in pods:
            self.devices.remove_pod(pod)
        return pods

    def force_add_pod(self, pod: core.Pod | PodInfo, node_name: str) -> bool:
        """Add a pod to a node whether it fits or not; False if there is no such node."""
        if self.get(node_name) is None:
            return False
        self._simulator.snapshot.add_pod(pod if isinstance(pod, PodInfo) else PodInfo(pod), node_name)
        return True

    def unschedule_pod(self, pod: core.Pod, node_name: str) -> None:
        """Remove a pod from its node and release its devices."""
        self._simulator.snapshot.remove_pod(pod.metadata.uid, node_name)
        self.devices.unreserve(pod)

    def schedule_pod(self, pod: PodInfo, node_name: str) -> bool:
        """Schedule a pod on a node and allocate its devices, if it fits; report whether it does."""
        state = CycleState()
        if self._simulator.check(pod, node_name, state) is not None:
            return False
        return self._reserve(state, pod, node_name)

    def _reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        status = self._dynamic_resources.reserve(state, pod, node_name)
        if status is not None and not status.is_success:
            return False
        self._simulator.snapshot.add_pod(pod, node_name)
        self.devices.reserve(pod.pod)
        return True

    @contextmanager
    def fork(self) -> Iterator[Callable[[], None]]:
        """Revert the changes of the block at its end, unless the function it is given was called."""
        keep = False

        def commit() -> None:
            nonlocal keep
            keep = True

        self._simulator.snapshot.fork()
        self.devices.fork()
        try:
            yield commit
        finally:
            for changed in (self._simulator.snapshot, self.devices):
                if keep:
                    changed.commit()
                else:
                    changed.revert()

    def schedule_pod_on_any_node(
        self, pod: PodInfo, is_acceptable: IsAcceptable = lambda _: True
    ) -> str | None:
        """Schedule a pod on the first acceptable node that it fits; return the node's name, or None.

        The search starts after the last node that was chosen.
        """
        snapshot = self._simulator.snapshot
        size = len(snapshot)
        framework = self._simulator.framework
        state = CycleState()
        narrowed, status, _ = framework.run_pre_filter_plugins(state, pod, snapshot)
        if (status is not None and not status.is_success) or not size:
            return None
        order = (np.arange(size, dtype=np.intp) + self._next) % size
        # The first few alone: devices are filtered node by node, and most pods fit one of the first nodes.
        for rows in np.split(order, (FIRST_BATCH,)):
            mask = np.ones(len(rows), dtype=np.bool_)
            for _, verdict in framework.filter_rows(state, pod, snapshot, rows):
                mask &= verdict
            for row in map(int, rows[mask]):
                node = snapshot.nodes[row]
                if narrowed.node_names is not None and node.name not in narrowed.node_names:
                    continue
                if is_acceptable(node) and self._reserve(state, pod, node.name):
                    self._next = (row + 1) % size
                    return node.name
        return None

    def search_from_start(self) -> None:
        """Let the next search begin at the first node, as in a new snapshot."""
        self._next = 0

    def try_schedule_pods(
        self,
        pods: Iterable[core.Pod],
        hints: SchedulingHints,
        is_acceptable: IsAcceptable,
        *,
        break_on_failure: bool,
    ) -> list[core.Pod]:
        """Schedule pods one after the other, on the node of their hint if possible; update the hints.

        Return the pods that fit no node; only the first such pod with `break_on_failure`.
        """
        unschedulable: list[core.Pod] = []
        for pod in pods:
            info = PodInfo(unbound(pod))
            hint = self.get(hints.get(info.uid))
            if hint is not None and is_acceptable(hint) and self.schedule_pod(info, hint.name):
                hints.set(info.uid, hint.name)
                continue
            name = self.schedule_pod_on_any_node(info, is_acceptable)
            if name is not None:
                hints.set(info.uid, name)
                continue
            unschedulable.append(pod)
            if break_on_failure:
                break
        return unschedulable
