"""Which group to grow, and by how much, for pods that have no place. Pure.

Source: cluster-autoscaler 1.36, scale-up orchestrator. One way to grow a loop.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from autoscaler.options import Options
from autoscaler.planning import expander
from autoscaler.planning.balancing import ScaleUp, balance, similar
from autoscaler.planning.binpacking import Heterogeneity, estimate
from autoscaler.planning.cluster_state import ClusterState
from autoscaler.planning.equivalence import EquivalenceGroup, equivalence_groups
from autoscaler.planning.expander import ScaleUpOption
from autoscaler.planning.observation import CloudView, NodeGroup
from autoscaler.planning.quotas import MaxQuota
from autoscaler.planning.snapshot import ClusterSnapshot
from autoscaler.planning.template_node import TemplateNode
from machinery.api.pb import core
from scheduler.framework.types import NodeInfo

MAX_SIZE = "max node group size reached"
NOT_READY = "not ready for scale-up"
BACKOFF = "in backoff after failed scale-up"
MAX_TOTAL = "max total nodes in cluster reached"
FAILED = "scale-up execution failed"


class ScaleUpResult(StrEnum):
    SUCCESSFUL = "ScaleUpSuccessful"
    ERROR = "ScaleUpError"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    LIMITED = "ScaleUpLimitedByMaxNodesTotal"
    NOT_NEEDED = "ScaleUpNotNeeded"
    NOT_TRIED = "ScaleUpNotTried"
    IN_COOLDOWN = "ScaleUpInCooldown"


@dataclass(slots=True, kw_only=True)
class ScaleUpPlan:
    """What to order, and the reasons for pods that get nothing."""

    result: ScaleUpResult
    orders: list[ScaleUp] = field(default_factory=list)
    triggered: list[core.Pod] = field(default_factory=list)
    awaiting: list[core.Pod] = field(default_factory=list)
    """They would fit somewhere, but not where this order goes: next loop."""
    remaining: list[tuple[core.Pod, dict[str, tuple[str, ...]]]] = field(default_factory=list)
    """Pods that fit nowhere, and why, by group."""
    error: str = ""
    max_nodes_total_reached: bool = False
    groups: list[EquivalenceGroup] = field(default_factory=list)
    skipped: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused_by_quota: Counter[str] = field(default_factory=Counter)
    """How many groups were skipped for want of a resource, by resource."""
    heterogeneity: list[Heterogeneity] = field(default_factory=list)
    """One for each estimate."""

    def rule_out(self, group: str) -> None:
        """The order to this group has failed; pods that would fit nowhere else get nothing."""
        for alike in self.groups:
            if group in alike.fits:
                alike.fits.remove(group)
                alike.rejected[group] = (FAILED,)
        self.remaining = _remaining(self.groups, self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpInput:
    """What the planner looks at. `nodes` are all of the snapshot, those on their way included."""

    options: Options
    snapshot: ClusterSnapshot
    state: ClusterState
    view: CloudView
    templates: Mapping[str, TemplateNode]
    nodes: Sequence[core.Node]
    rng: random.Random
    now: float


def plan_scale_up(given: ScaleUpInput, pods: Sequence[core.Pod]) -> ScaleUpPlan:
    """What to order for these pods."""
    groups = equivalence_groups(pods)
    quota = MaxQuota(given.options, given.nodes, given.now)
    skipped: dict[str, tuple[str, ...]] = {}
    valid: list[NodeGroup] = []
    for group in given.view.groups.values():
        reason = _skip_reason(given, group, quota)
        if reason:
            skipped[group.id] = (reason,)
        else:
            valid.append(group)
    for group in valid:
        _try_groups(given, group, groups)
    options = [option for group in valid if (option := _option(given, group, valid, groups)) is not None]
    plan = _choose(given, groups, valid, options, quota, skipped)
    plan.refused_by_quota = quota.refused
    plan.heterogeneity = [
        Heterogeneity.of(_node(given.templates[group.id]), fitting)
        for group in valid
        if (fitting := [alike for alike in groups if group.id in alike.fits])
    ]
    return plan


def _choose(
    given: ScaleUpInput,
    groups: list[EquivalenceGroup],
    valid: Sequence[NodeGroup],
    options: Sequence[ScaleUpOption],
    quota: MaxQuota,
    skipped: dict[str, tuple[str, ...]],
) -> ScaleUpPlan:
    """Order nodes of the best option."""
    if not options:
        return ScaleUpPlan(result=ScaleUpResult.NO_OPTIONS, remaining=_remaining(groups, skipped))
    best = expander.best(options, given.options.expander, given.rng)
    count, most = best.nodes, given.options.max_nodes_total
    reached = bool(most) and count + len(given.nodes) > most
    if reached:
        count = most - len(given.nodes)
    if count < 1:
        return ScaleUpPlan(
            result=ScaleUpResult.ERROR,
            triggered=list(best.pods),
            max_nodes_total_reached=True,
            error="max node total count already reached",
        )
    count = quota.allowed(_node(best.template), count)
    targets = [best.group]
    if given.options.balance_similar_node_groups:
        targets += _similar(given, best.group, valid, groups)
    return ScaleUpPlan(
        result=ScaleUpResult.SUCCESSFUL,
        orders=_within_quota(given, balance(targets, count), quota),
        max_nodes_total_reached=reached,
        triggered=list(best.pods),
        awaiting=[pod for g in groups if g.fits and best.group.id not in g.fits for pod in g.pods],
        remaining=_remaining(groups, skipped),
        groups=groups,
        skipped=skipped,
    )


def plan_min_size(given: ScaleUpInput) -> ScaleUpPlan:
    """Orders for groups that are smaller than their minimum."""
    quota = MaxQuota(given.options, given.nodes, given.now)
    orders = []
    for group in given.view.groups.values():
        if group.target >= group.min or _not_ready_reason(given, group):
            continue
        template = given.templates.get(group.id)
        if template is None or template.node is None or quota.exceeded(template.node):
            continue
        count = quota.allowed(template.node, group.min - group.target)
        if count > 0:
            orders.append(ScaleUp(group, group.target + count))
    if not orders:
        return ScaleUpPlan(result=ScaleUpResult.NOT_NEEDED)
    return ScaleUpPlan(result=ScaleUpResult.SUCCESSFUL, orders=orders)


def _not_ready_reason(given: ScaleUpInput, group: NodeGroup) -> str:
    if not given.state.is_group_healthy(group.id):
        return NOT_READY
    return BACKOFF if given.state.backoff.active(group.id, given.now) is not None else ""


def _skip_reason(given: ScaleUpInput, group: NodeGroup, quota: MaxQuota) -> str:
    reason = _not_ready_reason(given, group)
    if reason:
        return reason
    if group.target >= group.max:
        return MAX_SIZE
    template = given.templates.get(group.id)
    if template is None or template.node is None:
        return NOT_READY
    exceeded = quota.exceeded(template.node)
    if exceeded:
        return f'exceeded quota: "cluster-wide", resources: {", ".join(exceeded)}'
    return ""


def _try_groups(given: ScaleUpInput, group: NodeGroup, pods: Sequence[EquivalenceGroup]) -> None:
    """Which pods a new node of the group would take."""
    template = given.templates[group.id]
    with given.snapshot.fork():
        given.snapshot.add_node(template)
        for alike in pods:
            status = given.snapshot.check(alike.sample, template.name)
            if status is None:
                alike.fits.append(group.id)
            else:
                alike.rejected[group.id] = tuple(status.reasons)


def _option(
    given: ScaleUpInput, group: NodeGroup, valid: Sequence[NodeGroup], pods: Sequence[EquivalenceGroup]
) -> ScaleUpOption | None:
    fitting = [alike for alike in pods if group.id in alike.fits]
    if not fitting:
        return None
    template = given.templates[group.id]
    room = group.max - group.target
    if given.options.balance_similar_node_groups:
        room += sum(other.max - other.target for other in _similar(given, group, valid, pods))
    limit = min(room, given.options.max_nodes_per_scaleup or room)
    if given.options.max_nodes_total:
        limit = min(limit, given.options.max_nodes_total - len(given.nodes))
    nodes, placed = estimate(given.snapshot, template, fitting, limit)
    return ScaleUpOption(group, nodes, tuple(placed), template) if nodes and placed else None


def _similar(
    given: ScaleUpInput, group: NodeGroup, valid: Sequence[NodeGroup], pods: Sequence[EquivalenceGroup]
) -> list[NodeGroup]:
    wanted = [group.id in alike.fits for alike in pods]
    return [
        other
        for other in valid
        if other.id != group.id
        and similar(given.templates[group.id], given.templates[other.id])
        # It must take at least the pods that the group takes.
        and all(other.id in alike.fits for alike, fits in zip(pods, wanted, strict=True) if fits)
    ]


def _within_quota(given: ScaleUpInput, orders: Sequence[ScaleUp], quota: MaxQuota) -> list[ScaleUp]:
    """Each group gets what the quota has left after those before it; none gets another's share."""
    capped = []
    for order in orders:
        count = quota.take(_node(given.templates[order.group.id]), order.delta)
        if count:
            capped.append(ScaleUp(order.group, order.group.target + count))
    return capped


def _node(template: NodeInfo) -> core.Node:
    assert template.node is not None
    return template.node


def _remaining(
    groups: Sequence[EquivalenceGroup], skipped: Mapping[str, tuple[str, ...]]
) -> list[tuple[core.Pod, dict[str, tuple[str, ...]]]]:
    return [(pod, {**g.rejected, **skipped}) for g in groups if not g.fits for pod in g.pods]


def summary(reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Count equal reasons of all groups: `2 Insufficient cpu, 1 max node group size reached`."""
    counts = Counter(text for texts in reasons.values() for text in texts)
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
