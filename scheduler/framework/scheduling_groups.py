"""Pods by the pod group that they belong to (`spec.schedulingGroup`), and which of them have nodes.

Source: KEP-4671; kube-scheduler 1.36, pod group manager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from machinery.api.objects import ObjectKey
from machinery.api.pb import core


def group_of(pod: core.Pod) -> ObjectKey | None:
    """The key of the pod's group; None for a pod of its own."""
    if not pod.spec.HasField("schedulingGroup"):
        return None
    return ObjectKey(pod.metadata.namespace, pod.spec.schedulingGroup.podGroupName)


class SchedulingGroups:
    """Every pod that the watch shows and that is in a group; `is_assumed` tells of decided ones (by uid)."""

    def __init__(self, is_assumed: Callable[[str], bool] = lambda uid: False) -> None:
        self._is_assumed = is_assumed
        self._members: dict[ObjectKey, dict[str, core.Pod]] = {}
        self._tried: Collection[str] = ()

    def put(self, pod: core.Pod) -> None:
        """The pod is there, or has changed."""
        key = group_of(pod)
        if key is not None:
            self._members.setdefault(key, {})[pod.metadata.uid] = pod

    def remove(self, pod: core.Pod) -> None:
        """The pod is gone."""
        key = group_of(pod)
        if key is None or key not in self._members:
            return
        members = self._members[key]
        members.pop(pod.metadata.uid, None)
        if not members:
            del self._members[key]

    def members(self, key: ObjectKey) -> Mapping[str, core.Pod]:
        """By uid. Look only."""
        return self._members.get(key, {})

    def scheduled_count(self, key: ObjectKey) -> int:
        """Members that have a node, or are assumed to have one."""
        return sum(self._has_node(pod) for pod in self.members(key).values())

    def unscheduled(self, key: ObjectKey) -> list[core.Pod]:
        """Members without a node, in the order in which they came."""
        return [pod for pod in self.members(key).values() if not self._has_node(pod)]

    @contextmanager
    def trying(self, uids: Collection[str]) -> Iterator[None]:
        """While these members are tried together."""
        self._tried = uids
        try:
            yield
        finally:
            self._tried = ()

    def left_behind(self, key: ObjectKey) -> list[core.Pod]:
        """Members without a node that are not being tried: asking for those too would try them for ever."""
        return [pod for pod in self.unscheduled(key) if pod.metadata.uid not in self._tried]

    def assumed(self, key: ObjectKey) -> list[str]:
        """Uids of members that are decided and not bound yet."""
        return [
            uid for uid, pod in self.members(key).items() if not pod.spec.nodeName and self._is_assumed(uid)
        ]

    def _has_node(self, pod: core.Pod) -> bool:
        return bool(pod.spec.nodeName) or self._is_assumed(pod.metadata.uid)
