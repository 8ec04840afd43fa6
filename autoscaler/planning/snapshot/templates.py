"""Template nodes of the node groups: from a ready node, from an earlier loop, or from the provider. Pure.

Source: cluster-autoscaler 1.36, mixed template node info provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nominee.autoscaler.planning.objects import annotation_keys, pods, readiness, taints
from nominee.autoscaler.planning.objects.observation import CloudView, DaemonSet, NodeGroup
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.planning.snapshot.dynamic_resources import Slice
from nominee.autoscaler.planning.snapshot.sanitized_devices import has_devices_of
from nominee.autoscaler.planning.snapshot.template_node import TemplateNode
from nominee.machinery.api.objects import controller_of, copy_of, get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time
from nominee.scheduler.framework.types import PodInfo

STABILIZATION_SECONDS = 60.0
"""A node that became ready later than so long ago is no template yet: it may still change."""
NODE_CRITICAL_CLASS = "system-node-critical"


class TemplateNodeProvider:
    """Provide the template of each group; those made from real nodes are cached while the group exists."""

    def __init__(self, *, force_daemon_sets: bool = False) -> None:
        self._force_daemon_sets = force_daemon_sets
        self._cache: dict[str, TemplateNode] = {}
        self._slices: dict[str, tuple[Slice, ...]] = {}
        """Slices of a node of each group, by group ID."""

    def process(
        self,
        view: CloudView,
        nodes: Iterable[core.Node],
        snapshot: ClusterSnapshot,
        daemon_sets: Iterable[DaemonSet],
        now: float,
    ) -> dict[str, TemplateNode]:
        """Return the templates by group ID; groups without any source have none."""
        templates: dict[str, TemplateNode] = {}
        by_name = sorted(nodes, key=lambda node: node.metadata.name)
        sets = list(daemon_sets)
        for node in by_name:
            group = view.group(node.metadata.name)
            if group is not None and group.id not in templates and _is_good_example(node, now):
                templates[group.id] = self._cache[group.id] = self._from_node(group, node, snapshot, sets)
                self._slices[group.id] = snapshot.devices.slices.of_node(node.metadata.name)
        self._collect_slices(view, by_name, snapshot, templates)
        for group in view.groups.values():
            if group.id in templates:
                continue
            if group.id in self._cache:
                templates[group.id] = self._cache[group.id]
            elif group.template is not None:
                slices = self._slices.get(group.id, ())
                templates[group.id] = _from_provider(group, group.template, sets, slices)
        for node in by_name:
            group = view.group(node.metadata.name)
            if group is not None and group.id not in templates:
                templates[group.id] = self._from_node(group, node, snapshot, sets)
        self._cache = {name: info for name, info in self._cache.items() if name in view.groups}
        self._slices = {name: slices for name, slices in self._slices.items() if name in view.groups}
        return templates

    def _collect_slices(
        self,
        view: CloudView,
        nodes: Iterable[core.Node],
        snapshot: ClusterSnapshot,
        templates: Mapping[str, TemplateNode],
    ) -> None:
        """Keep the slices of the node with the most devices, for each group whose nodes are all new."""
        best: dict[str, tuple[Slice, ...]] = {}
        for node in nodes:
            group = view.group(node.metadata.name)
            if group is not None and group.id not in templates:
                slices = snapshot.devices.slices.of_node(node.metadata.name)
                best[group.id] = max(best.get(group.id, ()), slices, key=_device_count)
        self._slices |= {name: slices for name, slices in best.items() if slices}

    def _from_node(
        self, group: NodeGroup, node: core.Node, snapshot: ClusterSnapshot, daemon_sets: Sequence[DaemonSet]
    ) -> TemplateNode:
        """Make a template from a real node, with its devices and the pods that a new node would run.

        These are the node's DaemonSet and mirror pods, and pods of DaemonSets that have none there yet: all
        with `--force-ds`, else those that would preempt others.
        """
        new, name = _sanitized_node(group, node), node.metadata.name
        on_node = [pod for pod in snapshot.pods_on(name) if not pod.metadata.HasField("deletionTimestamp")]
        kept = [pod for pod in on_node if pods.is_daemon(pod) or pods.is_mirror(pod)]
        devices = snapshot.devices
        claims = [claim for pod in kept for claim in devices.claims_of(pod)]
        slices = devices.slices.of_node(name)
        running = {owner.uid for pod in on_node if (owner := controller_of(pod)) is not None}
        missing = [each for each in daemon_sets if each.uid not in running]
        added = [
            pod
            for pod in _suitable_daemon_pods(new, missing)
            if self._force_daemon_sets or _is_node_critical(pod)
        ]
        return TemplateNode.sanitize(new, slices, map(PodInfo, [*kept, *added]), claims, new.metadata.name)

    def lacks_devices(self, group: str, slices: Sequence[Slice]) -> bool:
        """Report whether a node of the group with these slices has fewer devices than another node had."""
        return not has_devices_of(slices, self._slices.get(group, ()))


def _is_good_example(node: core.Node, now: float) -> bool:
    """Report whether the node is ready, schedulable and stable, and is not being deleted."""
    condition = get_condition(node.status.conditions, "Ready")
    if condition is None or not readiness.is_ready_and_schedulable(node):
        return False
    stable = from_time(condition.lastTransitionTime) + STABILIZATION_SECONDS < now
    return stable and not taints.has_to_be_deleted(node)


def _sanitized_node(group: NodeGroup, node: core.Node) -> core.Node:
    """Return a copy named after the group, without transient taints."""
    copy = copy_of(node)
    name = f"template-node-for-{group.id}"
    copy.metadata.name = copy.metadata.labels[annotation_keys.HOSTNAME_LABEL] = name
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
    """Make a template from the provider's node; `slices` are another node's, since providers report none."""
    new = _sanitized_node(group, node)
    added = map(PodInfo, _suitable_daemon_pods(new, daemon_sets))
    return TemplateNode.sanitize(new, slices, added, (), new.metadata.name)


def _suitable_daemon_pods(node: core.Node, daemon_sets: Iterable[DaemonSet]) -> list[core.Pod]:
    """Return the pods of the DaemonSets that tolerate the node's taints and select it."""
    return [each.pod for each in daemon_sets if each.rules.verdict(node).runs]


def _is_node_critical(pod: core.Pod) -> bool:
    """Report whether the pod would preempt others on any node."""
    policy = pod.spec.preemptionPolicy or "PreemptLowerPriority"
    return pod.spec.priorityClassName == NODE_CRITICAL_CLASS and policy == "PreemptLowerPriority"
