"""What a new node of each group would be like: from one that is ready, from before, or from the provider.

Source: cluster-autoscaler 1.36, mixed template node info provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from autoscaler.planning import annotation_keys, pods, readiness, taints
from autoscaler.planning.dynamic_resources import Slice
from autoscaler.planning.observation import CloudView, DaemonSet, NodeGroup
from autoscaler.planning.sanitized_devices import has_devices_of
from autoscaler.planning.snapshot import ClusterSnapshot
from autoscaler.planning.template_node import TemplateNode
from machinery.api.objects import get_condition
from machinery.api.pb import core
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock, from_time
from machinery.scheduling.node_affinity import matches
from machinery.scheduling.taints import find_untolerated
from scheduler.framework.types import PodInfo

STABLE_SECONDS = 60.0
"""A node that became ready just now may still change."""
NODE_CRITICAL = "system-node-critical"


class Templates:
    """Templates by group; those made from real nodes are kept while the group exists."""

    def __init__(self, gates: Gates, clock: Clock, *, force_daemon_sets: bool = False) -> None:
        self._gates, self._clock = gates, clock
        self._force_daemon_sets = force_daemon_sets
        self._kept: dict[str, TemplateNode] = {}
        self._slices: dict[str, tuple[Slice, ...]] = {}  # of a node of each group

    def update(
        self,
        view: CloudView,
        nodes: Iterable[core.Node],
        snapshot: ClusterSnapshot,
        daemon_sets: Iterable[DaemonSet],
        now: float,
    ) -> dict[str, TemplateNode]:
        """One template a group, of those that have any."""
        found: dict[str, TemplateNode] = {}
        ordered = sorted(nodes, key=lambda node: node.metadata.name)
        sets = list(daemon_sets)
        for node in ordered:
            group = view.group(node.metadata.name)
            if group is not None and group.id not in found and _is_good(node, now):
                found[group.id] = self._kept[group.id] = self._from_node(group, node, snapshot, sets)
                self._slices[group.id] = snapshot.devices.slices.of_node(node.metadata.name)
        self._look_for_devices(view, ordered, snapshot, found)
        for group in view.groups.values():
            if group.id in found:
                continue
            if group.id in self._kept:
                found[group.id] = self._kept[group.id]
            elif group.template is not None:
                slices = self._slices.get(group.id, ())
                found[group.id] = _from_provider(group, group.template, sets, slices)
        for node in ordered:
            group = view.group(node.metadata.name)
            if group is not None and group.id not in found:
                found[group.id] = self._from_node(group, node, snapshot, sets)
        self._kept = {name: info for name, info in self._kept.items() if name in view.groups}
        self._slices = {name: slices for name, slices in self._slices.items() if name in view.groups}
        return found

    def _look_for_devices(
        self,
        view: CloudView,
        nodes: Iterable[core.Node],
        snapshot: ClusterSnapshot,
        found: Mapping[str, TemplateNode],
    ) -> None:
        """Of groups whose nodes are all new: what the one with the most devices has published by now."""
        best: dict[str, tuple[Slice, ...]] = {}
        for node in nodes:
            group, slices = (
                view.group(node.metadata.name),
                snapshot.devices.slices.of_node(node.metadata.name),
            )
            if group is not None and group.id not in found:
                best[group.id] = max(best.get(group.id, ()), slices, key=_device_count)
        self._slices |= {name: slices for name, slices in best.items() if slices}

    def _from_node(
        self, group: NodeGroup, node: core.Node, snapshot: ClusterSnapshot, daemon_sets: Sequence[DaemonSet]
    ) -> TemplateNode:
        """Make a template after a real node: its devices, and the pods that a new node would have, too.

        These are the node's DaemonSet and mirror pods, and those of DaemonSets that have none there yet: all
        with `--force-ds`, else those that would preempt others to get their place.
        """
        new, name = _template(group, node), node.metadata.name
        on_node = [pod for pod in snapshot.pods_on(name) if not pod.metadata.HasField("deletionTimestamp")]
        stay = [pod for pod in on_node if pods.is_daemon(pod) or pods.is_mirror(pod)]
        devices = snapshot.devices
        claims = [claim for pod in stay for claim in devices.claims_of(pod)]
        slices = devices.slices.of_node(name)
        running = {owner.uid for pod in on_node if (owner := pods.controller_of(pod)) is not None}
        missing = [each for each in daemon_sets if each.uid not in running]
        added = [
            pod for pod in _daemon_pods(new, missing) if self._force_daemon_sets or _is_node_critical(pod)
        ]
        return TemplateNode.after(new, slices, map(PodInfo, [*stay, *added]), claims, new.metadata.name)

    def lacks_devices(self, group: str, slices: Sequence[Slice]) -> bool:
        """Whether a node of the group with these slices is to get more of them: others of it had."""
        return not has_devices_of(slices, self._slices.get(group, ()))


def fresh(template: TemplateNode, suffix: str, *, upcoming: bool = False) -> TemplateNode:
    """A node made after the template, with a name of its own."""
    assert template.node is not None
    node = core.Node()
    node.CopyFrom(template.node)
    node.metadata.name = node.metadata.labels[annotation_keys.HOSTNAME_LABEL] = f"{template.name}-{suffix}"
    if upcoming:
        node.metadata.annotations[annotation_keys.UPCOMING_NODE] = "true"
    return TemplateNode.after(node, template.slices, template.pods.values(), template.claims, suffix)


def _is_good(node: core.Node, now: float) -> bool:
    condition = get_condition(node.status.conditions, "Ready")
    if condition is None or not readiness.is_ready(node) or node.spec.unschedulable:
        return False
    stable = from_time(condition.lastTransitionTime) + STABLE_SECONDS < now
    return stable and taints.taint_time(node, taints.TO_BE_DELETED) is None


def _template(group: NodeGroup, node: core.Node) -> core.Node:
    copy = core.Node()
    copy.CopyFrom(node)
    copy.metadata.name = copy.metadata.labels[annotation_keys.HOSTNAME_LABEL] = (
        f"template-node-for-{group.id}"
    )
    copy.metadata.uid = f"template-{group.id}"
    copy.spec.unschedulable = False
    del copy.spec.taints[:]
    copy.spec.taints.extend(taint for taint in node.spec.taints if not taints.is_transient_taint(taint.key))
    return copy


def _device_count(slices: Sequence[Slice]) -> int:
    return sum(len(each.spec.devices) for each in slices)


def _from_provider(
    group: NodeGroup, node: core.Node, daemon_sets: Iterable[DaemonSet], slices: Sequence[Slice]
) -> TemplateNode:
    """`slices` are another node's of the group: a provider does not report devices."""
    new = _template(group, node)
    added = map(PodInfo, _daemon_pods(new, daemon_sets))
    return TemplateNode.after(new, slices, added, (), new.metadata.name)


def _daemon_pods(node: core.Node, daemon_sets: Iterable[DaemonSet]) -> list[core.Pod]:
    """Return the pods of the DaemonSets that tolerate the node's taints and select it."""
    return [
        each.pod
        for each in daemon_sets
        if find_untolerated(node.spec.taints, each.pod.spec.tolerations) is None and matches(each.pod, node)
    ]


def _is_node_critical(pod: core.Pod) -> bool:
    """Report whether the pod would preempt others on any node."""
    policy = pod.spec.preemptionPolicy or "PreemptLowerPriority"
    return pod.spec.priorityClassName == NODE_CRITICAL and policy == "PreemptLowerPriority"
