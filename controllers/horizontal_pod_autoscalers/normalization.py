"""The limits of a number of replicas: stabilization, rates, minReplicas and maxReplicas. Pure.

Source: kube-controller-manager 1.36, pkg/controller/podautoscaler (horizontal, normalizeDesiredReplicas...).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.machinery.api.pb import autoscaling

_UP_FACTOR, _UP_LEAST = 2.0, 4.0
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_READY = ("ReadyForNewScale", "recommended size matches current size")
_UP_STABLE = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABLE = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


class Sample(NamedTuple):
    """A number of replicas, and its time in seconds of `Clock.monotonic`."""

    replicas: int
    time: float


@dataclass(slots=True)
class History:
    """The recommendations of an autoscaler, and the numbers of replicas by which it scaled up and down."""

    recommendations: list[Sample] = field(default_factory=list)
    ups: list[Sample] = field(default_factory=list)
    downs: list[Sample] = field(default_factory=list)

    def note_scale(self, before: int, after: int, now: float) -> None:
        """Note that the target was scaled."""
        if after > before:
            self.ups.append(Sample(after - before, now))
        elif after < before:
            self.downs.append(Sample(before - after, now))

    def forget(self, now: float, seconds: float) -> None:
        """Drop samples that are older than every window."""
        for samples in (self.recommendations, self.ups, self.downs):
            samples[:] = [each for each in samples if each.time >= now - seconds]

    def change(self, period: float, now: float) -> int:
        """Return by how much the replicas grew within a period."""
        return sum(each.replicas for each in self.ups if each.time > now - period) - sum(
            each.replicas for each in self.downs if each.time > now - period
        )


class Reason(NamedTuple):
    """The reason and message of a condition."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Normalized:
    """The replicas to scale to, with the conditions AbleToScale (True) and ScalingLimited."""

    replicas: int
    able: Reason
    limited: bool
    limit: Reason


def normalize(
    spec: autoscaling.HorizontalPodAutoscalerSpec,
    current: int,
    desired: int,
    history: History,
    settings: Settings,
    now: float,
) -> Normalized:
    """Return the replicas that are allowed now, and note the recommendation in the history."""
    has_behavior = spec.HasField("behavior")
    up, down = spec.behavior.scaleUp, spec.behavior.scaleDown
    down_window = settings.downscale_stabilization
    if has_behavior and down.HasField("stabilizationWindowSeconds"):
        down_window = float(down.stabilizationWindowSeconds)
    up_window = float(up.stabilizationWindowSeconds)
    periods = [float(policy.periodSeconds) for policy in (*up.policies, *down.policies)]
    history.forget(now, max(down_window, up_window, *periods))
    recent = history.recommendations
    highest = max((s.replicas for s in recent if s.time > now - down_window), default=desired)
    highest = max(highest, desired)
    if has_behavior:
        lowest = min((s.replicas for s in recent if s.time > now - up_window), default=desired)
        stable = min(max(current, min(lowest, desired)), highest)
    else:
        stable = highest
    recent.append(Sample(desired, now))
    able = _READY
    if stable != desired:
        able = _UP_STABLE if has_behavior and desired >= current else _DOWN_STABLE
    if has_behavior:
        replicas, limit = _by_behavior(spec, current, stable, history, now)
    else:
        replicas, limit = _by_rules(spec, current, stable)
    return Normalized(replicas, Reason(*able), replicas != stable, Reason(*limit))


def _by_rules(
    spec: autoscaling.HorizontalPodAutoscalerSpec, current: int, desired: int
) -> tuple[int, tuple[str, str]]:
    most, reason = spec.maxReplicas, _TOO_MANY
    rate = int(max(_UP_FACTOR * current, _UP_LEAST))
    if most > rate:
        most, reason = rate, _UP_LIMIT
    if desired < spec.minReplicas:
        return spec.minReplicas, _TOO_FEW
    return (most, reason) if desired > most else (desired, _WITHIN)


def _by_behavior(
    spec: autoscaling.HorizontalPodAutoscalerSpec, current: int, desired: int, history: History, now: float
) -> tuple[int, tuple[str, str]]:
    if desired > current:
        rate = max(_rate_limit(spec.behavior.scaleUp, current, history, now, up=True), current)
        most, reason = (rate, _UP_LIMIT) if spec.maxReplicas > rate else (spec.maxReplicas, _TOO_MANY)
        return (most, reason) if desired > most else (desired, _WITHIN)
    if desired < current:
        rate = min(_rate_limit(spec.behavior.scaleDown, current, history, now, up=False), current)
        least, reason = (rate, _DOWN_LIMIT) if spec.minReplicas < rate else (spec.minReplicas, _TOO_FEW)
        return (least, reason) if desired < least else (desired, _WITHIN)
    return desired, _WITHIN


def _rate_limit(
    rules: autoscaling.HPAScalingRules, current: int, history: History, now: float, *, up: bool
) -> int:
    """Return the replicas to which the policies allow to scale."""
    if rules.selectPolicy == "Disabled" or not rules.policies:
        return current
    allowed = []
    for policy in rules.policies:
        before = current - history.change(float(policy.periodSeconds), now)
        change = policy.value if up else -policy.value
        if policy.type == "Pods":
            allowed.append(before + change)
        else:
            share = before * (1 + change / 100)
            allowed.append(math.ceil(share) if up else int(share))
    return max(allowed) if up is (rules.selectPolicy != "Min") else min(allowed)
