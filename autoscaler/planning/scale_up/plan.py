"""Scale-up planning: which group grows, and by how much, for pods that fit on no node. Pure.

Source: cluster-autoscaler 1.36, core/scaleup/orchestrator. One option is chosen in each loop.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.cluster_state import ClusterStateRegistry
from nominee.autoscaler.planning.objects.observation import CloudView, NodeGroup
from nominee.autoscaler.planning.objects.quotas import MaxQuota
from nominee.autoscaler.planning.scale_up import expander
from nominee.autoscaler.planning.scale_up.balancing import ScaleUpInfo, balance_between_groups, is_similar
from nominee.autoscaler.planning.scale_up.binpacking import Heterogeneity, estimate
from nominee.autoscaler.planning.scale_up.equivalence import EquivalenceGroup, equivalence_groups
from nominee.autoscaler.planning.scale_up.expander import ScaleUpOption
from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.autoscaler.planning.snapshot.template_node import TemplateNode
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment
from nominee.scheduler.framework.types import NodeInfo

MAX_SIZE_REACHED = "max node group size reached"
NOT_READY = "not ready for scale-up"
BACKOFF = "in backoff after failed scale-up"
MAX_NODES_TOTAL_REACHED = "max total nodes in cluster reached"
EXECUTION_FAILED = "scale-up execution failed"


class ScaleUpResult(StrEnum):
    """Upstream's result of a scale-up."""

    SUCCESSFUL = "ScaleUpSuccessful"
    ERROR = "ScaleUpError"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    LIMITED = "ScaleUpLimitedByMaxNodesTotal"
    NOT_NEEDED = "ScaleUpNotNeeded"
    NO_STATUS = ""
    """The loop ended before there was a status."""
    NOT_TRIED = "ScaleUpNotTried"
    IN_COOLDOWN = "ScaleUpInCooldown"


@dataclass(slots=True, kw_only=True)
class ScaleUpPlan:
    """Groups to increase, and the effect on the pending pods."""

    result: ScaleUpResult
    scale_ups: list[ScaleUpInfo] = field(default_factory=list)
    triggered: list[core.Pod] = field(default_factory=list)
    """Pods that the new nodes are for."""
    awaiting: list[core.Pod] = field(default_factory=list)
    """Pods that fit on nodes of other groups only: they are evaluated again in the next loop."""
    remaining: list[tuple[core.Pod, dict[str, tuple[str, ...]]]] = field(default_factory=list)
    """Pods that fit on nodes of no group, with the reasons by group."""
    error: str = ""
    max_nodes_total_reached: bool = False
    groups: list[EquivalenceGroup] = field(default_factory=list)
    skipped: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Why groups were not considered, by group."""
    refused_by_quota: Counter[str] = field(default_factory=Counter)
    """Number of groups skipped because of a limit of the cluster, by resource."""
    heterogeneity: list[Heterogeneity] = field(default_factory=list)
    """One for each estimate."""

    def exclude(self, group: str) -> None:
        """Mark a group as failed: pods that fit on its nodes only are now `remaining`."""
        for equivalent in self.groups:
            if group in equivalent.schedulable_groups:
                equivalent.schedulable_groups.remove(group)
                equivalent.scheduling_errors[group] = (EXECUTION_FAILED,)
        self.remaining = _remaining(self.groups, self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpInput:
    """Input of the planner. `nodes` are all of the snapshot, upcoming ones included."""

    options: Options
    snapshot: ClusterSnapshot
    registry: ClusterStateRegistry
    view: CloudView
    templates: Mapping[str, TemplateNode]
    nodes: Sequence[core.Node]
    rng: random.Random
    at: Moment


def plan_scale_up(inputs: ScaleUpInput, pods: Sequence[core.Pod]) -> ScaleUpPlan:
    """Plan a scale-up for these pods."""
    groups = equivalence_groups(pods)
    quota = MaxQuota(inputs.options, inputs.nodes, inputs.at.now)
    skipped: dict[str, tuple[str, ...]] = {}
    valid: list[NodeGroup] = []
    for group in inputs.view.groups.values():
        reason = _skip_reason(inputs, group, quota)
        if reason:
            skipped[group.id] = (reason,)
        else:
            valid.append(group)
    for group in valid:
        _check_pods(inputs, group, groups)
    options = [option for group in valid if (option := _option(inputs, group, valid, groups)) is not None]
    plan = _choose(inputs, groups, valid, options, quota, skipped)
    plan.refused_by_quota = quota.refusals
    plan.heterogeneity = [
        Heterogeneity.of(_node(inputs.templates[group.id]), fitting)
        for group in valid
        if (fitting := [equivalent for equivalent in groups if group.id in equivalent.schedulable_groups])
    ]
    return plan


def _choose(
    inputs: ScaleUpInput,
    groups: list[EquivalenceGroup],
    valid: Sequence[NodeGroup],
    options: Sequence[ScaleUpOption],
    quota: MaxQuota,
    skipped: dict[str, tuple[str, ...]],
) -> ScaleUpPlan:
    """Plan the best option, as far as the limits of the cluster allow."""
    if not options:
        return ScaleUpPlan(result=ScaleUpResult.NO_OPTIONS, remaining=_remaining(groups, skipped))
    best = expander.best_option(options, inputs.options.expander, inputs.rng)
    count, nodes_max = best.node_count, inputs.options.max_nodes_total
    reached = bool(nodes_max) and count + len(inputs.nodes) > nodes_max
    if reached:
        count = nodes_max - len(inputs.nodes)
    if count < 1:
        return ScaleUpPlan(
            result=ScaleUpResult.ERROR,
            triggered=list(best.pods),
            max_nodes_total_reached=True,
            error="max node total count already reached",
        )
    count = quota.count_max(_node(best.template), count)
    targets = [best.group]
    if inputs.options.balance_similar_node_groups:
        targets += _similar(inputs, best.group, valid, groups)
    awaiting = [g for g in groups if g.schedulable_groups and best.group.id not in g.schedulable_groups]
    return ScaleUpPlan(
        result=ScaleUpResult.SUCCESSFUL,
        scale_ups=_within_quota(inputs, balance_between_groups(targets, count), quota),
        max_nodes_total_reached=reached,
        triggered=list(best.pods),
        awaiting=[pod for group in awaiting for pod in group.pods],
        remaining=_remaining(groups, skipped),
        groups=groups,
        skipped=skipped,
    )


def plan_scale_up_to_min_size(inputs: ScaleUpInput) -> ScaleUpPlan:
    """Plan a scale-up of the groups that are below their minimum size."""
    quota = MaxQuota(inputs.options, inputs.nodes, inputs.at.now)
    scale_ups = []
    for group in inputs.view.groups.values():
        if group.target >= group.min or _not_ready_reason(inputs, group):
            continue
        template = inputs.templates.get(group.id)
        if template is None or template.node is None or quota.shortages(template.node):
            continue
        count = quota.count_max(template.node, group.min - group.target)
        if count > 0:
            scale_ups.append(ScaleUpInfo(group, group.target + count))
    if not scale_ups:
        return ScaleUpPlan(result=ScaleUpResult.NOT_NEEDED)
    return ScaleUpPlan(result=ScaleUpResult.SUCCESSFUL, scale_ups=scale_ups)


def _not_ready_reason(inputs: ScaleUpInput, group: NodeGroup) -> str:
    if not inputs.registry.is_node_group_healthy(group.id):
        return NOT_READY
    return BACKOFF if inputs.registry.backoff.status(group.id, inputs.at.monotonic) is not None else ""


def _skip_reason(inputs: ScaleUpInput, group: NodeGroup, quota: MaxQuota) -> str:
    reason = _not_ready_reason(inputs, group)
    if reason:
        return reason
    if group.target >= group.max:
        return MAX_SIZE_REACHED
    template = inputs.templates.get(group.id)
    if template is None or template.node is None:
        return NOT_READY
    exceeded = quota.shortages(template.node)
    if exceeded:
        return f'exceeded quota: "cluster-wide", resources: {", ".join(exceeded)}'
    return ""


def _check_pods(inputs: ScaleUpInput, group: NodeGroup, pods: Sequence[EquivalenceGroup]) -> None:
    """Check which pods fit on a new node of the group, and record that in `pods`."""
    template = inputs.templates[group.id]
    with inputs.snapshot.fork():
        inputs.snapshot.add_node(template)
        for equivalent in pods:
            status = inputs.snapshot.check(equivalent.sample, template.name)
            if status is None:
                equivalent.schedulable_groups.append(group.id)
            else:
                equivalent.scheduling_errors[group.id] = tuple(status.reasons)


def _option(
    inputs: ScaleUpInput, group: NodeGroup, valid: Sequence[NodeGroup], pods: Sequence[EquivalenceGroup]
) -> ScaleUpOption | None:
    """Return how many nodes of the group the pods need; None if the group helps no pod."""
    fitting = [equivalent for equivalent in pods if group.id in equivalent.schedulable_groups]
    if not fitting:
        return None
    template = inputs.templates[group.id]
    room = group.max - group.target
    if inputs.options.balance_similar_node_groups:
        room += sum(other.max - other.target for other in _similar(inputs, group, valid, pods))
    nodes_max = min(room, inputs.options.max_nodes_per_scaleup or room)
    if inputs.options.max_nodes_total:
        nodes_max = min(nodes_max, inputs.options.max_nodes_total - len(inputs.nodes))
    count, scheduled = estimate(inputs.snapshot, template, fitting, nodes_max)
    return ScaleUpOption(group, count, tuple(scheduled), template) if count and scheduled else None


def _similar(
    inputs: ScaleUpInput, group: NodeGroup, valid: Sequence[NodeGroup], pods: Sequence[EquivalenceGroup]
) -> list[NodeGroup]:
    """Return the groups that are similar to this one and take at least the same pods."""
    fitting = [equivalent for equivalent in pods if group.id in equivalent.schedulable_groups]
    return [
        other
        for other in valid
        if other.id != group.id
        and is_similar(inputs.templates[group.id], inputs.templates[other.id])
        and all(other.id in equivalent.schedulable_groups for equivalent in fitting)
    ]


def _within_quota(
    inputs: ScaleUpInput, scale_ups: Sequence[ScaleUpInfo], quota: MaxQuota
) -> list[ScaleUpInfo]:
    """Limit each scale-up to the quota that is left by those before it."""
    limited = []
    for info in scale_ups:
        count = quota.take(_node(inputs.templates[info.group.id]), info.delta)
        if count:
            limited.append(ScaleUpInfo(info.group, info.group.target + count))
    return limited


def _node(template: NodeInfo) -> core.Node:
    assert template.node is not None
    return template.node


def _remaining(
    groups: Sequence[EquivalenceGroup], skipped: Mapping[str, tuple[str, ...]]
) -> list[tuple[core.Pod, dict[str, tuple[str, ...]]]]:
    return [
        (pod, {**g.scheduling_errors, **skipped})
        for g in groups
        if not g.schedulable_groups
        for pod in g.pods
    ]


def reasons_summary(reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Count equal reasons of all groups: `2 Insufficient cpu, 1 max node group size reached`."""
    counts = Counter(text for texts in reasons.values() for text in texts)
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
