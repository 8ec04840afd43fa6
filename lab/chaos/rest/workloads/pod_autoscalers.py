"""Horizontal pod autoscalers and their targets. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, get_condition, is_terminating, metadata_of
from nominee.machinery.api.pb import apps, autoscaling, core
from nominee.machinery.runtime.clock import from_time

Target = apps.Deployment | apps.ReplicaSet | apps.StatefulSet | core.ReplicationController
_TARGETS: Final = (kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.REPLICATION_CONTROLLER)

_RATES: Final = {"ScaleUpLimit": "scaleUp", "ScaleDownLimit": "scaleDown"}
"""The rules that stand behind a reason of ScalingLimited."""
RATE_SECONDS_MAX: Final = 600.0
"""For so long an autoscaler may go on step by step."""


def pod_autoscalers(state: State) -> Iterator[Finding]:
    """Find autoscalers whose target has other replicas than they want, and wrong numbers in their status.

    One that is held back by its rate is about to scale on. Its currentReplicas are spec.replicas of the
    target's scale (kube-controller-manager 1.36, horizontal.go, reconcileAutoscaler).
    """
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.HORIZONTAL_POD_AUTOSCALER):
        target = target_of(state, each)
        conditions = each.status.conditions
        is_active = all(condition_is(conditions, name) for name in ("AbleToScale", "ScalingActive"))
        if target is None or not is_active or is_terminating(each) or is_terminating(target):
            continue
        desired, least = each.status.desiredReplicas, each.spec.minReplicas
        if target.spec.replicas != desired:
            yield Finding(
                name_of(each), f"wants {desired} replicas, and its target has {target.spec.replicas}"
            )
        if not least <= target.spec.replicas <= each.spec.maxReplicas:
            limits = f"{least} to {each.spec.maxReplicas}"
            yield Finding(
                name_of(each), f"allows {limits} replicas, and its target has {target.spec.replicas}"
            )
        # Of the spec, of which pods may be missing, and beside which a rollout that waits has others.
        if each.status.currentReplicas != target.spec.replicas:
            shown = f"{each.status.currentReplicas} currentReplicas"
            yield Finding(name_of(each), f"shows {shown}, and its target has {target.spec.replicas}")
        if state.now < _held_back_until(each):
            yield Finding(name_of(each), "scales on when its rate allows it", RATE_SECONDS_MAX)


def _held_back_until(autoscaler: autoscaling.HorizontalPodAutoscaler) -> float:
    """Return when the rate of an autoscaler allows more than now; 0 if another limit holds.

    Scalings count for a period, those of an earlier target too (kube-controller-manager 1.36, horizontal.go,
    calculateScaleUpLimitWithScalingRules).
    """
    limited = get_condition(autoscaler.status.conditions, "ScalingLimited")
    name = _RATES.get(limited.reason) if limited is not None and limited.status == "True" else None
    if name is None or not autoscaler.spec.HasField("behavior"):
        return 0.0
    rules: autoscaling.HPAScalingRules = getattr(autoscaler.spec.behavior, name)
    if rules.selectPolicy == "Disabled" or not autoscaler.status.HasField("lastScaleTime"):
        return 0.0
    period = max((policy.periodSeconds for policy in rules.policies), default=0)
    return from_time(autoscaler.status.lastScaleTime) + period


def target_of(state: State, autoscaler: autoscaling.HorizontalPodAutoscaler) -> Target | None:
    """Return the object that an autoscaler scales, if its kind is one of these."""
    reference = autoscaler.spec.scaleTargetRef
    for kind in _TARGETS:
        targets: Sequence[Target] = state.of(kind) if kind.kind == reference.kind else ()
        for each in targets:
            metadata = metadata_of(each)
            if (metadata.namespace, metadata.name) == (autoscaler.metadata.namespace, reference.name):
                return each
    return None
