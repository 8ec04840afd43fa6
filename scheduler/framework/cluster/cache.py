"""Keep nodes and the pods on them, ahead of the API server by the scheduler's own assumptions.

A pod is assumed on its node when it is decided, forgotten when binding fails, and confirmed when the watch
shows it bound. Source: kube-scheduler 1.36, backend cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from nominee.machinery.api.pb import core
from nominee.machinery.api.zones import zone_of
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import ImageState, NodeInfo, PodInfo


class CacheError(Exception):
    """An operation does not fit the state of the cache; the text names the pod or the node."""


@dataclass(slots=True)
class _PodState:
    info: PodInfo
    node_name: str
    assumed: bool = False


class Cache:
    """Nodes, their pods, and the assumed ones among these."""

    def __init__(self) -> None:
        # Most recently changed last, so that a snapshot needs to look at the changed ones only.
        self._nodes: OrderedDict[str, NodeInfo] = OrderedDict()
        self._pods: dict[str, _PodState] = {}
        self._assumed: set[str] = set()
        self._images: dict[str, ImageState] = {}
        self._zones: dict[tuple[str, str], dict[str, None]] = {}
        self._generation = 0
        self._structure = 0  # changes when a node comes or goes

    # Pods

    def assume_pod(self, pod: PodInfo, node_name: str) -> None:
        """Add a pod that was decided to go to the node."""
        if pod.uid in self._pods:
            raise CacheError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self._add(pod, node_name, assumed=True)

    def forget_pod(self, pod: PodInfo) -> None:
        """Remove an assumed pod that does not go to its node after all."""
        state = self._pods.get(pod.uid)
        if state is None:
            return  # deleted meanwhile
        if not state.assumed:
            raise CacheError(f"pod {pod.uid}({pod.key}) wasn't assumed so cannot be forgotten")
        self._remove(state)

    def add_pod(self, pod: PodInfo) -> None:
        """Add a pod that the API server shows on its node; this confirms an assumed pod, even elsewhere."""
        node_name = pod.pod.spec.nodeName
        state = self._pods.get(pod.uid)
        if state is None:
            self._add(pod, node_name)
        elif state.assumed:
            self._move(state, pod, node_name)
        else:
            raise CacheError(f"pod {pod.uid}({pod.key}) was already in added state")

    def update_pod(self, pod: PodInfo) -> None:
        """Replace a pod on its node."""
        state = self._pods.get(pod.uid)
        if state is None:
            raise CacheError(
                f"pod {pod.uid}({pod.key}) is not added to scheduler cache, so cannot be updated"
            )
        if state.assumed:
            raise CacheError(f"assumed pod {pod.uid}({pod.key}) should not be updated")
        self._move(state, pod, pod.pod.spec.nodeName)

    def remove_pod(self, pod: PodInfo) -> None:
        """Remove a pod that the API server does not have any more."""
        state = self._pods.get(pod.uid)
        if state is None:
            raise CacheError(
                f"pod {pod.uid}({pod.key}) is not found in scheduler cache, so cannot be removed from it"
            )
        self._remove(state)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def get_pod(self, uid: str) -> PodInfo | None:
        state = self._pods.get(uid)
        return None if state is None else state.info

    def node_of(self, uid: str) -> str | None:
        """Return the node where the pod is or is assumed to be."""
        state = self._pods.get(uid)
        return None if state is None else state.node_name

    def assumed_pods(self) -> dict[str, str]:
        """Return the nodes of assumed pods, by uid."""
        return {uid: self._pods[uid].node_name for uid in self._assumed}

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def _add(self, pod: PodInfo, node_name: str, *, assumed: bool = False) -> None:
        self._node(node_name).add_pod(pod)
        self._pods[pod.uid] = _PodState(pod, node_name, assumed)
        if assumed:
            self._assumed.add(pod.uid)

    def _move(self, state: _PodState, pod: PodInfo, node_name: str) -> None:
        if state.node_name == node_name:
            self._node(node_name).add_pod(pod)
            state.info = pod
            state.assumed = False
        else:
            self._remove(state)
            self._add(pod, node_name)
        self._assumed.discard(pod.uid)

    def _remove(self, state: _PodState) -> None:
        info = self._node(state.node_name)
        info.remove_pod(state.info.uid)
        if info.node is None and not info.pods:
            del self._nodes[info.name]
        del self._pods[state.info.uid]
        self._assumed.discard(state.info.uid)

    def _node(self, name: str) -> NodeInfo:
        """Return the node, to be changed; it is imaginary while only its pods are known."""
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(name)
        else:
            self._nodes.move_to_end(name)
        self._generation += 1
        info.generation = self._generation
        return info

    # Nodes

    def put_node(self, node: core.Node) -> NodeInfo:
        """Add or replace a node, also one whose pods came first; return the cache's own NodeInfo."""
        name = node.metadata.name
        info = self._node(name)
        if info.node is None:
            self._enter_zone(node)
            self._structure += 1
        else:
            self._forget_images(info)
            if zone_of(info.node) != zone_of(node):
                self._leave_zone(info.node)
                self._enter_zone(node)
                self._structure += 1
        info.set_node(node)
        self._learn_images(info, node)
        return info

    def remove_node(self, name: str) -> None:
        """Remove a node; while it has pods, which may still be reported, it stays as an imaginary one."""
        info = self._nodes.get(name)
        if info is None or info.node is None:
            raise CacheError(f"node {name} is not found")
        self._forget_images(info)
        self._leave_zone(info.node)
        self._node(name).set_node(None)
        info.images = {}
        self._structure += 1
        if not info.pods:
            del self._nodes[name]

    def nodes(self) -> Iterator[NodeInfo]:
        """Return all nodes with their assumed pods, imaginary ones too; they must not be changed."""
        return iter(self._nodes.values())

    def get_node(self, name: str) -> NodeInfo | None:
        """Return the node with assumed pods, which must not be changed; None also for an imaginary one."""
        info = self._nodes.get(name)
        return None if info is None or info.node is None else info

    @property
    def node_count(self) -> int:
        """Return the number of real nodes."""
        return sum(len(names) for names in self._zones.values())

    def _learn_images(self, info: NodeInfo, node: core.Node) -> None:
        images: dict[str, ImageState] = {}
        for image in node.status.images:
            for name in image.names:
                state = self._images.get(name)
                if state is None:
                    state = self._images[name] = ImageState(image.sizeBytes)
                state.nodes.add(info.name)
                images[name] = state
        info.images = images

    def _forget_images(self, info: NodeInfo) -> None:
        for name, state in info.images.items():
            state.nodes.discard(info.name)
            if not state.nodes:
                self._images.pop(name, None)

    def _enter_zone(self, node: core.Node) -> None:
        self._zones.setdefault(zone_of(node), {})[node.metadata.name] = None

    def _leave_zone(self, node: core.Node) -> None:
        zone = zone_of(node)
        names = self._zones[zone]
        del names[node.metadata.name]
        if not names:
            del self._zones[zone]

    def node_names(self) -> list[str]:
        """Return all real nodes in the order in which they are tried: one of each zone in turn."""
        if len(self._zones) == 1:
            return list(next(iter(self._zones.values())))
        rest = [iter(names) for names in self._zones.values()]
        order: list[str] = []
        while rest:
            still = []
            for names in rest:
                name = next(names, None)
                if name is not None:
                    order.append(name)
                    still.append(names)
            rest = still
        return order

    # Snapshots

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Bring a snapshot of this cache up to date, at a cost by the number of changed nodes."""
        if snapshot.generation != self._generation:
            since = snapshot.generation
            for info in reversed(self._nodes.values()):
                if info.generation <= since:
                    break
                if info.node is not None:
                    snapshot.put(info.clone())
            snapshot.generation = self._generation
        if snapshot.structure != self._structure:
            names = self.node_names()
            if len(names) != len(snapshot):
                for gone in snapshot.row_of.keys() - set(names):
                    snapshot.drop(gone)
            snapshot.reorder(names)
            snapshot.structure = self._structure
