"""The cluster to try things on: the scheduler's own filters over pods that can be moved and put back.

Source: cluster-autoscaler 1.36, predicate snapshot and hinting simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from autoscaler.planning.dynamic_resources import DynamicResources
from autoscaler.planning.pods import unbound
from autoscaler.planning.template_node import TemplateNode
from machinery.api.pb import core
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Status
from scheduler.framework.profile import DEFAULT_SCHEDULER_NAME
from scheduler.framework.simulation import Simulator
from scheduler.framework.types import NodeInfo, PodInfo
from scheduler.plugins.registry import IN_TREE, default_profile

Acceptable = Callable[[NodeInfo], bool]
_DEVICES = "DynamicResources"
FIRST = 32  # nodes that are looked at before the rest


class Hints:
    """Where pods were placed in earlier simulations; those of no use for a whole loop are forgotten."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def get(self, uid: str) -> str:
        """A node's name, or ""."""
        return self._now.get(uid) or self._before.get(uid, "")

    def set(self, uid: str, node_name: str) -> None:
        self._now[uid] = node_name

    def drop_old(self) -> None:
        """A loop is over."""
        self._before, self._now = self._now, {}


class ClusterSnapshot:
    """Nodes in order of name, so that equal clusters get equal answers."""

    def __init__(
        self,
        nodes: Iterable[core.Node],
        *,
        gates: Gates,
        clock: Clock,
        devices: DynamicResources | None = None,
    ) -> None:
        """`devices` as they are in the cluster; they change with the snapshot from now on."""
        self.devices = devices or DynamicResources({})
        self._simulator = Simulator(
            default_profile(DEFAULT_SCHEDULER_NAME),
            IN_TREE,
            gates=gates,
            clock=clock,
            listers=self.devices.listers,
        )
        self._giver = next(p for p in self._simulator.framework.reserve_plugins if p.name == _DEVICES)
        self._next = 0
        for node in sorted(nodes, key=lambda node: node.metadata.name):
            self._simulator.snapshot.put(NodeInfo(node.metadata.name, node))

    # Looking

    def get(self, name: str) -> NodeInfo | None:
        return self._simulator.snapshot.get(name)

    def names(self) -> list[str]:
        return [info.name for info in self._simulator.snapshot.nodes]

    def nodes(self) -> list[core.Node]:
        """All node objects, also of nodes on their way."""
        return [info.node for info in self._simulator.snapshot.nodes if info.node is not None]

    def pods_on(self, name: str) -> list[core.Pod]:
        """In the order in which they came; empty for a node that is not there."""
        info = self.get(name)
        return [] if info is None else [pod.pod for pod in info.pods.values()]

    def check(self, pod: PodInfo, node_name: str) -> Status | None:
        """Why the pod does not fit the node; None when it does."""
        return self._simulator.check(pod, node_name)

    # Changing

    def add_node(self, info: NodeInfo) -> None:
        """With its devices, if it was made after a template."""
        self._simulator.snapshot.add_node(info)
        if isinstance(info, TemplateNode) and (info.slices or info.claims):
            self.devices.add_node(info.slices, info.claims)
            for pod in info.pods.values():
                self.devices.reserve(pod.pod)

    def remove_node(self, name: str) -> list[core.Pod]:
        """Takes a node out, with its devices; the pods that were on it."""
        pods = self.pods_on(name)
        self._simulator.snapshot.remove_node(name)
        self.devices.remove_node(name)
        for pod in pods:
            self.devices.remove_pod(pod)
        return pods

    def put(self, pod: core.Pod | PodInfo, node_name: str) -> bool:
        """Puts a pod on a node whether it fits or not; False where there is no such node."""
        if self.get(node_name) is None:
            return False
        self._simulator.snapshot.add_pod(pod if isinstance(pod, PodInfo) else PodInfo(pod), node_name)
        return True

    def unschedule(self, pod: core.Pod, node_name: str) -> None:
        """The pod is to be placed anew; its devices are free."""
        self._simulator.snapshot.remove_pod(pod.metadata.uid, node_name)
        self.devices.unreserve(pod)

    def schedule(self, pod: PodInfo, node_name: str) -> bool:
        """Puts a pod on a node if it fits; it has its devices then."""
        state = CycleState()
        if self._simulator.check(pod, node_name, state) is not None:
            return False
        return self._take_place(state, pod, node_name)

    def _take_place(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        status = self._giver.reserve(state, pod, node_name)
        if status is not None and not status.is_success:
            return False
        self._simulator.snapshot.add_pod(pod, node_name)
        self.devices.reserve(pod.pod)
        return True

    @contextmanager
    def fork(self) -> Iterator[Callable[[], None]]:
        """Changes within are undone at the end, unless the given function was called."""
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

    def place(self, pod: PodInfo, acceptable: Acceptable = lambda _: True) -> str | None:
        """Puts the pod on the first acceptable node that it fits, behind the last one taken; None if none."""
        snapshot = self._simulator.snapshot
        size = len(snapshot)
        framework = self._simulator.framework
        state = CycleState()
        narrowed, status, _ = framework.run_pre_filter_plugins(state, pod, snapshot)
        if (status is not None and not status.is_success) or not size:
            return None
        order = (np.arange(size, dtype=np.intp) + self._next) % size
        # The first few alone: looking for devices is done node by node, and most pods have a place soon.
        for rows in np.split(order, (FIRST,)):
            mask = np.ones(len(rows), dtype=np.bool_)
            for _, verdict in framework.filter_rows(state, pod, snapshot, rows):
                mask &= verdict
            for place in map(int, rows[mask]):
                node = snapshot.nodes[place]
                if narrowed.node_names is not None and node.name not in narrowed.node_names:
                    continue
                if acceptable(node) and self._take_place(state, pod, node.name):
                    self._next = (place + 1) % size
                    return node.name
        return None

    def place_all(
        self, pods: Iterable[core.Pod], hints: Hints, acceptable: Acceptable, *, stop: bool
    ) -> list[core.Pod]:
        """Places pods in turn, each first where it was placed in an earlier simulation; those with no place.

        `stop`: end at the first of them. The hints learn.
        """
        left: list[core.Pod] = []
        for pod in pods:
            info = PodInfo(unbound(pod))
            hint = self.get(hints.get(info.uid))
            if hint is not None and acceptable(hint) and self.schedule(info, hint.name):
                hints.set(info.uid, hint.name)
                continue
            name = self.place(info, acceptable)
            if name is not None:
                hints.set(info.uid, name)
                continue
            left.append(pod)
            if stop:
                break
        return left
