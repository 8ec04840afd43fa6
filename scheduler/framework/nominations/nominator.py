"""Keep the nominations of pending pods by node.

A nomination may name a node that does not exist (yet): it is kept all the same and goes away with its pod.
Source: KEP-5278 and KEP-1923; kube-scheduler 1.36, backend queue nominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cluster.change_log import ChangeLog
from nominee.scheduler.framework.nominations.nominating import NominatingInfo, NominatingMode
from nominee.scheduler.framework.types import PodInfo


class Nominator:
    """Nominated pods by node, in order of nomination. A pod has at most one nomination.

    `is_pending` returns whether a pod still exists and is not bound; other pods are not nominated.
    """

    def __init__(self, is_pending: Callable[[PodInfo], bool] = lambda pod: True) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._is_pending = is_pending
        self._highest: int | None = None
        self.changes = ChangeLog()  # nodes whose nominations changed

    def add(self, pod: PodInfo, info: NominatingInfo | None = None) -> None:
        """Nominate as the info says (Override), or as the pod's status says (NoOp, or no info)."""
        self.delete(pod.uid)
        if info is not None and info.mode is NominatingMode.Override:
            node_name = info.node_name
        else:
            node_name = pod.pod.status.nominatedNodeName
        if not node_name or not self._is_pending(pod):
            return
        self._highest = None
        self.changes.note(node_name)
        self._node_of[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def delete(self, uid: str) -> None:
        """Drop the pod's nomination, if it has one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        self._highest = None
        self.changes.note(node_name)
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]

    def update(self, old: core.Pod, new: PodInfo) -> None:
        """Follow a change of the pod.

        When the status names no node before and after, a nomination that is only in memory is kept: its write
        may not have come back yet. Any other change follows the new status.
        """
        info = None
        if not old.status.nominatedNodeName and not new.pod.status.nominatedNodeName:
            kept = self._node_of.get(old.metadata.uid)
            if kept is not None:
                info = NominatingInfo(NominatingMode.Override, kept)
        self.delete(old.metadata.uid)
        self.add(new, info)

    def pods_on(self, node_name: str) -> Iterable[PodInfo]:
        """Return the pods nominated to the node, in order of nomination."""
        pods = self._by_node.get(node_name)
        return () if pods is None else tuple(pods.values())

    def node_of(self, uid: str) -> str:
        """Return the node that the pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    @property
    def by_node(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """Return all nominated pods by uid by node, which must not be changed."""
        return MappingProxyType(self._by_node)

    def highest_priority(self) -> int | None:
        """Return the highest priority of all nominated pods, or None."""
        if self._highest is None and self._by_node:
            self._highest = max(pod.priority for pods in self._by_node.values() for pod in pods.values())
        return self._highest

    def __len__(self) -> int:
        return len(self._node_of)
