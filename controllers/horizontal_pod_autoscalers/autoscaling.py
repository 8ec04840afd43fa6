"""One sync of an autoscaler: the replicas by all its metrics, its conditions and events. Pure.

Source: kube-controller-manager 1.36, pkg/controller/podautoscaler (horizontal, reconcileAutoscaler).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nominee.controllers.horizontal_pod_autoscalers.normalization import History, Sample, normalize
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import (
    MetricError,
    Proposal,
    Settings,
    Target,
    Tolerances,
    propose,
    usages,
)
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey, copy_of, set_condition
from nominee.machinery.api.pb import autoscaling, autoscaling_v1, core
from nominee.machinery.api.selectors import go_text
from nominee.machinery.resources.quantity import Quantity, milli
from nominee.machinery.runtime.clock import Moment, to_time
from nominee.machinery.wire.pod_metrics import PodMetrics

_NO_CUSTOM: Final = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
_NO_EXTERNAL: Final = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource"
)
_RESOURCE_TYPES: Final = {"Resource": "resource", "ContainerResource": "containerResource"}

Usages = Sequence[PodMetrics] | StatusError
"""The answer of metrics.k8s.io."""


class _Failed(NamedTuple):
    """A metric without a proposal: the condition's reason and text, and the error that begins with it."""

    reason: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class Rescale:
    """The change of the target's replicas, and why."""

    replicas: int
    reason: str


@dataclass(slots=True)
class Sync:
    """A sync of an autoscaler. `hpa` is a copy whose status is changed; `events` are to be recorded."""

    hpa: autoscaling.HorizontalPodAutoscaler
    at: Moment
    events: list[PlannedEvent] = field(default_factory=list)
    proposals: list[tuple[str, int | None]] = field(default_factory=list)
    """The type of each metric that was computed, and the replicas that it proposes, or None."""
    growth: int = 0
    """By how many replicas the target was scaled up or, below 0, down."""

    @classmethod
    def of(cls, hpa: autoscaling.HorizontalPodAutoscaler, at: Moment) -> Sync:
        return cls(copy_of(hpa), at)

    @property
    def now(self) -> float:
        """Return the time for the history: a jump of the wall clock ends no window, as with Go's times."""
        return self.at.monotonic

    def condition(self, name: str, reason: str, message: str, *, status: bool = True) -> None:
        """Set a condition of the status."""
        row = autoscaling.HorizontalPodAutoscalerCondition(
            type=name, status="True" if status else "False", reason=reason, message=message
        )
        set_condition(self.hpa.status.conditions, row, to_time(self.at.now))

    def warn(self, reason: str, text: str) -> None:
        self.events.append(PlannedEvent(reason, text, "Warning"))

    def scale_unknown(self, error: str) -> None:
        """Note that the target has no scale."""
        self.warn("FailedGetScale", error)
        text = f"the HPA controller was unable to get the target's current scale: {error}"
        self.condition("AbleToScale", "FailedGetScale", text, status=False)

    def rescale_failed(self, rescale: Rescale, error: str) -> None:
        """Note that the target could not be scaled."""
        text = f"New size: {rescale.replicas}; reason: {rescale.reason}; error: {error}"
        self.warn("FailedRescale", text)
        text = f"the HPA controller was unable to update the target scale: {error}"
        self.condition("AbleToScale", "FailedUpdateScale", text, status=False)

    def rescale_done(self, rescale: Rescale, current: int, history: History) -> None:
        """Note that the target was scaled."""
        text = f"the HPA controller was able to update the target scale to {rescale.replicas}"
        self.condition("AbleToScale", "SucceededRescale", text)
        note = f"New size: {rescale.replicas}; reason: {rescale.reason}"
        self.events.append(PlannedEvent("SuccessfulRescale", note))
        if self.hpa.spec.HasField("behavior"):
            history.note_scale(current, rescale.replicas, self.now)
        self.growth = rescale.replicas - current
        self.hpa.status.desiredReplicas = rescale.replicas
        self.hpa.status.lastScaleTime.CopyFrom(to_time(self.at.now))


def target_kind(hpa: autoscaling.HorizontalPodAutoscaler) -> AnyKind | str:
    """Return the kind of the target, or the reason for which it has no scale."""
    reference = hpa.spec.scaleTargetRef
    group = reference.apiVersion.rpartition("/")[0]
    for kind in kinds.KINDS:
        if (kind.group, kind.kind) == (group, reference.kind):
            return kind
    return f'no matches for kind "{reference.kind}" in group "{group}"'


def reads_metrics(hpa: autoscaling.HorizontalPodAutoscaler, scale: autoscaling_v1.Scale) -> bool:
    """Report whether the decision depends on metrics of the pods."""
    spec, replicas = hpa.spec, scale.spec.replicas
    within = spec.minReplicas <= replicas <= spec.maxReplicas and replicas
    return bool(within and scale.status.selector)


def decide(
    sync: Sync,
    scale: autoscaling_v1.Scale,
    rows: Usages,
    pods: Sequence[core.Pod],
    history: History,
    settings: Settings,
    *,
    rivals: Sequence[ObjectKey] = (),
    configurable_tolerance: bool = True,
) -> Rescale | None:
    """Return the change of the replicas that is due; conditions, status and events are those of `sync`.

    `rivals`: the autoscalers, this one among them, whose selectors match the pods, if there are several.
    """
    spec, status, current = sync.hpa.spec, sync.hpa.status, scale.spec.replicas
    sync.condition(
        "AbleToScale",
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )
    if not history.recommendations:
        history.recommendations.append(Sample(current, sync.now))
    status.currentReplicas = current
    if not current:  # no autoscaler scales to zero here: the metrics that it needs for that are not served
        text = "scaling is disabled since the replica count of the target is zero"
        sync.condition("ScalingActive", "ScalingDisabled", text, status=False)
        del status.currentMetrics[:]
        status.desiredReplicas = 0
        return None
    outside = ""
    if current > spec.maxReplicas:
        outside, desired = "Current number of replicas above Spec.MaxReplicas", spec.maxReplicas
    elif current < spec.minReplicas:
        outside, desired = "Current number of replicas below Spec.MinReplicas", spec.minReplicas
    if outside:
        del status.currentMetrics[:]
        return Rescale(desired, outside)
    tolerances = _tolerances(sync.hpa, settings, configurable=configurable_tolerance)
    if not scale.status.selector or rivals:
        _refuse_selector(sync, scale.status.selector, rivals)
        return None
    found = _by_metrics(sync, scale, rows, pods, tolerances, settings)
    if found is None:
        return None
    proposed, metric = found
    limits = normalize(spec, current, proposed, history, settings, sync.now)
    sync.condition("AbleToScale", *limits.able)
    sync.condition("ScalingLimited", *limits.limit, status=limits.limited)
    if limits.replicas == current:
        status.desiredReplicas = current
        return None
    reason = "All metrics below target" if proposed < current else ""
    return Rescale(limits.replicas, f"{metric} above target" if proposed > current else reason)


def _tolerances(
    hpa: autoscaling.HorizontalPodAutoscaler, settings: Settings, *, configurable: bool
) -> Tolerances:
    def of(rules: autoscaling.HPAScalingRules) -> float:
        if configurable and rules.HasField("tolerance"):
            return milli(rules.tolerance) / 1000
        return settings.tolerance

    return Tolerances(of(hpa.spec.behavior.scaleDown), of(hpa.spec.behavior.scaleUp))


def _refuse_selector(sync: Sync, selector: str, rivals: Sequence[ObjectKey]) -> None:
    """Note that the target has no selector, or one by which several autoscalers control its pods."""
    text = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(map(str, rivals))}]"
    warning, reason, message = "AmbiguousSelector", "AmbiguousSelector", text
    if not selector:
        warning, text = "SelectorRequired", "selector is required"
        reason, message = "InvalidSelector", "the HPA target's scale is missing a selector"
    del sync.hpa.status.currentMetrics[:]
    sync.warn(warning, text)
    sync.condition("ScalingActive", reason, message, status=False)
    sync.warn("FailedComputeMetricsReplicas", text)


def _by_metrics(
    sync: Sync,
    scale: autoscaling_v1.Scale,
    rows: Usages,
    pods: Sequence[core.Pod],
    tolerances: Tolerances,
    settings: Settings,
) -> tuple[int, str] | None:
    """Return the largest proposal and its metric; None where a failed one might be larger."""
    spec, current = sync.hpa.spec, scale.spec.replicas
    replicas, name = 0, ""
    failures: list[_Failed] = []
    statuses: list[autoscaling.MetricStatus] = []
    for metric in spec.metrics:
        found = _of_metric(sync, metric, current, rows, pods, tolerances, settings)
        sync.proposals.append((metric.type, None if isinstance(found, _Failed) else found.replicas))
        if isinstance(found, _Failed):
            sync.warn(found.reason, found.text)
            failures.append(found)
            statuses.append(autoscaling.MetricStatus())
            continue
        statuses.append(_status_of(metric, found))
        if not replicas or found.replicas > replicas:
            replicas, name = found.replicas, _name_of(metric)
    del sync.hpa.status.currentMetrics[:]
    sync.hpa.status.currentMetrics.extend(statuses)
    if len(failures) >= len(spec.metrics) or (failures and replicas < current):
        first = failures[0]
        text = f"the HPA was unable to compute the replica count: {first.text}"
        sync.condition("ScalingActive", first.reason, text, status=False)
        counts = f"{len(failures)} invalid out of {len(spec.metrics)}"
        sync.warn(
            "FailedComputeMetricsReplicas", f"invalid metrics ({counts}), first error is: {first.error}"
        )
        return None
    text = f"the HPA was able to successfully calculate a replica count from {name}"
    sync.condition("ScalingActive", "ValidMetricFound", text)
    return replicas, name


def _of_metric(
    sync: Sync,
    metric: autoscaling.MetricSpec,
    current: int,
    rows: Usages,
    pods: Sequence[core.Pod],
    tolerances: Tolerances,
    settings: Settings,
) -> Proposal | _Failed:
    if metric.type not in _RESOURCE_TYPES:
        return _without_api(metric, sync.hpa.metadata.namespace)
    target = _target_of(metric)
    try:
        try:
            if isinstance(rows, StatusError):
                raise MetricError(f"unable to fetch metrics from resource metrics API: {rows}")
            metrics = usages(rows, target)
        except MetricError as error:
            raise MetricError(f"unable to get metrics for resource {target.resource}: {error}") from None
        return propose(target, current, metrics, pods, tolerances, settings, sync.at.now)
    except MetricError as error:
        of, what = "usage" if target.utilization is None else "utilization", f"{target.resource} resource"
        reason = "FailedGetResourceMetric"
        if target.container:
            reason, what = "FailedGetContainerResourceMetric", f"{target.container} container"
        text = f"failed to get {target.resource} {of}: {error}"
        return _Failed(reason, text, f"failed to get {what} metric value: {text}")


def _target_of(metric: autoscaling.MetricSpec) -> Target:
    source = getattr(metric, _RESOURCE_TYPES[metric.type])
    container = source.container if metric.type == "ContainerResource" else ""
    if source.target.HasField("averageValue"):
        return Target(source.name, container, average=milli(source.target.averageValue))
    return Target(source.name, container, utilization=source.target.averageUtilization)


def _without_api(metric: autoscaling.MetricSpec, namespace: str) -> _Failed:
    """Return the failure of a metric of an API that is not served."""
    if metric.type == "Object":
        about, target = metric.object.describedObject, metric.object.target
        name = metric.object.metric.name
        text = f"unable to get metric {name}: {about.kind} on {namespace} {about.name}/{_NO_CUSTOM}"
        what = f"failed to get {name} object metric: " if target.HasField("averageValue") else ""
        return _Failed("FailedGetObjectMetric", text, f"failed to get object metric value: {what}{text}")
    if metric.type == "Pods":
        text = f"unable to get metric {metric.pods.metric.name}: {_NO_CUSTOM}"
        return _Failed("FailedGetPodsMetric", text, f"failed to get pods metric value: {text}")
    if metric.type == "External":
        of, is_average = metric.external.metric, metric.external.target.HasField("averageValue")
        selector = go_text(of.selector) if of.HasField("selector") else "nil"
        problem = f"{_NO_EXTERNAL} (get {of.name}.external.metrics.k8s.io)"
        text = f"unable to get external metric {namespace}/{of.name}/{selector}: {problem}"
        what = f"{of.name} external metric" if is_average else f"external metric {of.name}"
        error = f"failed to get {of.name} external metric value: failed to get {what}: {text}"
        return _Failed("FailedGetExternalMetric", text, error)
    text = f'unknown metric source type "{metric.type}"'
    return _Failed("InvalidMetricSourceType", text, text)


def _name_of(metric: autoscaling.MetricSpec) -> str:
    target = _target_of(metric)
    if target.utilization is None:
        return f"{target.resource} resource"
    of = "container resource" if target.container else "resource"
    return f"{target.resource} {of} utilization (percentage of request)"


def _status_of(metric: autoscaling.MetricSpec, proposal: Proposal) -> autoscaling.MetricStatus:
    status, target = autoscaling.MetricStatus(type=metric.type), _target_of(metric)
    source = getattr(status, _RESOURCE_TYPES[metric.type])
    source.name = target.resource
    if target.container:
        source.container = target.container
    source.current.averageValue.string = Quantity.of_milli(proposal.average).canonical()
    if proposal.utilization is not None:
        source.current.averageUtilization = proposal.utilization
    return status
