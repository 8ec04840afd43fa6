"""Keep pods by the pod group that they belong to (`spec.schedulingGroup`), and which of them have nodes.

Source: KEP-4671; kube-scheduler 1.36, pod group manager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core


def group_of(pod: core.Pod) -> ObjectKey | None:
    """Return the key of the pod's group; None for a pod without one."""
    if not pod.spec.HasField("schedulingGroup"):
        return None
    return ObjectKey(pod.metadata.namespace, pod.spec.schedulingGroup.podGroupName)


class SchedulingGroups:
    """The pods in groups that the watch shows; `is_assumed`: whether a pod (by uid) is assumed on a node."""

    def __init__(self, is_assumed: Callable[[str], bool] = lambda uid: False) -> None:
        self._is_assumed = is_assumed
        self._members: dict[ObjectKey, dict[str, core.Pod]] = {}
        self._tried: Collection[str] = ()

    def put(self, pod: core.Pod) -> None:
        """Add or replace a pod."""
        key = group_of(pod)
        if key is not None:
            self._members.setdefault(key, {})[pod.metadata.uid] = pod

    def remove(self, pod: core.Pod) -> None:
        """Remove a pod that does not exist any more."""
        key = group_of(pod)
        if key is None or key not in self._members:
            return
        members = self._members[key]
        members.pop(pod.metadata.uid, None)
        if not members:
            del self._members[key]

    def members(self, key: ObjectKey) -> Mapping[str, core.Pod]:
        """Return the pods of a group by uid, which must not be changed."""
        return self._members.get(key, {})

    def scheduled_count(self, key: ObjectKey) -> int:
        """Return how many members have a node, or are assumed to have one."""
        return sum(self._has_node(pod) for pod in self.members(key).values())

    def unscheduled(self, key: ObjectKey) -> list[core.Pod]:
        """Return the members without a node, in the order in which they came."""
        return [pod for pod in self.members(key).values() if not self._has_node(pod)]

    @contextmanager
    def trying(self, uids: Collection[str]) -> Iterator[None]:
        """Mark these members as being tried together while the block runs."""
        self._tried = uids
        try:
            yield
        finally:
            self._tried = ()

    def left_behind(self, key: ObjectKey) -> list[core.Pod]:
        """Return the members without a node that are not being tried now."""
        return [pod for pod in self.unscheduled(key) if pod.metadata.uid not in self._tried]

    def assumed(self, key: ObjectKey) -> list[str]:
        """Return the uids of members that are decided and not bound yet."""
        return [
            uid for uid, pod in self.members(key).items() if not pod.spec.nodeName and self._is_assumed(uid)
        ]

    def _has_node(self, pod: core.Pod) -> bool:
        return bool(pod.spec.nodeName) or self._is_assumed(pod.metadata.uid)
