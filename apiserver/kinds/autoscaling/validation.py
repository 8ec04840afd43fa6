"""HorizontalPodAutoscalers (kube-apiserver 1.36, pkg/apis/autoscaling/validation)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.values.quantities import NOT_NEGATIVE, container_resource_name
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import autoscaling, resource
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.resources.quantity import Quantity

_API_VERSION_CHECKED_SINCE: Final = Version(1, 34)
_FOR_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"
_WINDOW_SECONDS_MAX = 3600
_PERIOD_SECONDS_MAX = 1800
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The checks that depend on gates, on the version and on the stored autoscaler."""

    least_replicas: int = 1
    checks_target_version: bool = True
    needs_target_group: bool = True
    checks_object_versions: bool = True


def options_for(
    new: autoscaling.HorizontalPodAutoscaler, old: autoscaling.HorizontalPodAutoscaler | None, gates: Gates
) -> Options:
    """Return the options of a new or updated autoscaler (validationOptionsForHorizontalPodAutoscaler)."""
    zero = gates.enabled("HPAScaleToZero") or (
        old is not None and old.spec.HasField("minReplicas") and not old.spec.minReplicas
    )
    checks = gates.version >= _API_VERSION_CHECKED_SINCE
    target = new.spec.scaleTargetRef
    before = old.spec.scaleTargetRef if old is not None else None
    same = before is not None and (before.apiVersion, before.kind) == (target.apiVersion, target.kind)
    stored = [metric.object.describedObject for metric in old.spec.metrics] if old is not None else []
    return Options(
        least_replicas=0 if zero else 1,
        checks_target_version=checks and not same,
        needs_target_group=target.kind != "ReplicationController",
        checks_object_versions=checks and not any(_version_problem(each) for each in stored),
    )


def validate(obj: autoscaling.HorizontalPodAutoscaler, options: Options) -> list[Cause]:
    """Check the spec (validateHorizontalPodAutoscalerSpec)."""
    spec = obj.spec
    errors: list[Cause] = []
    if spec.HasField("minReplicas") and spec.minReplicas < options.least_replicas:
        problem = f"must be greater than or equal to {options.least_replicas}"
        errors.append(field.invalid("spec.minReplicas", spec.minReplicas, problem))
    if spec.maxReplicas < 1:
        errors.append(field.invalid("spec.maxReplicas", spec.maxReplicas, "must be greater than 0"))
    if spec.HasField("minReplicas") and spec.maxReplicas < spec.minReplicas:
        problem = "must be greater than or equal to `minReplicas`"
        errors.append(field.invalid("spec.maxReplicas", spec.maxReplicas, problem))
    errors += _reference("spec.scaleTargetRef", spec.scaleTargetRef)
    if options.checks_target_version:
        needs_group = options.needs_target_group
        errors += _api_version("spec.scaleTargetRef", spec.scaleTargetRef, needs_group=needs_group)
    for index, metric in enumerate(spec.metrics):
        errors += _metric(f"spec.metrics[{index}]", metric, options)
    to_zero = spec.HasField("minReplicas") and not spec.minReplicas
    if to_zero and not any(metric.type in ("Object", "External") for metric in spec.metrics):
        errors.append(field.forbidden("spec.metrics", _FOR_ZERO))
    return [*errors, *_behavior("spec.behavior", spec.behavior)]


def validate_status(
    new: autoscaling.HorizontalPodAutoscaler, old: autoscaling.HorizontalPodAutoscaler
) -> list[Cause]:
    """Check a changed status."""
    errors = field.non_negative("status.currentReplicas", new.status.currentReplicas)
    return errors + field.non_negative("status.desiredReplicas", new.status.desiredReplicas)


def _reference(path: str, reference: autoscaling.CrossVersionObjectReference) -> list[Cause]:
    errors: list[Cause] = []
    for name in ("kind", "name"):
        value = getattr(reference, name)
        if not value:
            errors.append(field.required(f"{path}.{name}"))
        errors += [
            field.invalid(f"{path}.{name}", value, problem) for problem in names.path_segment(value) if value
        ]
    return errors


def _version_problem(reference: autoscaling.CrossVersionObjectReference, *, needs_group: bool = False) -> str:
    """Return the problem of an apiVersion, or "" (ValidateAPIVersion)."""
    text = reference.apiVersion
    if text.count("/") > 1:
        return f"unexpected GroupVersion string: {text}"
    group = text.rpartition("/")[0]
    return "apiVersion must specify API group" if needs_group and not group else ""


def _api_version(
    path: str, reference: autoscaling.CrossVersionObjectReference, *, needs_group: bool = False
) -> list[Cause]:
    problem = _version_problem(reference, needs_group=needs_group)
    return [field.invalid(f"{path}.apiVersion", reference.apiVersion, problem)] if problem else []


def _metric(path: str, metric: autoscaling.MetricSpec, options: Options) -> Iterator[Cause]:
    if not metric.type:
        yield field.required(f"{path}.type", "must specify a metric source type")
    wanted = _SOURCES.get(metric.type)
    if wanted is None:
        yield field.not_supported(f"{path}.type", metric.type, sorted(_SOURCES))
    present = [name for name in _RULES if metric.HasField(name)]
    if present:
        # Only the first is looked into: of several, none but the wanted one may stay.
        yield from _RULES[present[0]](f"{path}.{present[0]}", getattr(metric, present[0]), options)
    if wanted is not None and wanted not in present:
        yield field.required(f"{path}.{wanted}", "must populate information for the given metric source")
    if len(present) != 1:
        problem = "must populate the given metric source only"
        yield from (field.forbidden(f"{path}.{name}", problem) for name in present if name != wanted)


def _object(path: str, source: autoscaling.ObjectMetricSource, options: Options) -> list[Cause]:
    """validateObjectSource."""
    about = source.describedObject
    errors = _reference(f"{path}.describedObject", about)
    if options.checks_object_versions:
        errors += _api_version(f"{path}.describedObject", about)
    return [
        *errors,
        *_identifier(f"{path}.metric", source.metric),
        *_target(f"{path}.target", source.target),
        *_either_value(f"{path}.target", source.target, "must set either a target value or averageValue"),
    ]


def _external(path: str, source: autoscaling.ExternalMetricSource, options: Options) -> list[Cause]:
    """validateExternalSource."""
    target = source.target
    errors = [*_identifier(f"{path}.metric", source.metric), *_target(f"{path}.target", target)]
    problem = "must set either a target value for metric or a per-pod target"
    errors += _either_value(f"{path}.target", target, problem)
    if target.HasField("value") and target.HasField("averageValue"):
        problem = "may not set both a target value for metric and a per-pod target"
        errors.append(field.forbidden(f"{path}.target.value", problem))
    return errors


def _pods(path: str, source: autoscaling.PodsMetricSource, options: Options) -> list[Cause]:
    """validatePodsSource."""
    errors = [*_identifier(f"{path}.metric", source.metric), *_target(f"{path}.target", source.target)]
    if not source.target.HasField("averageValue") or _sign(source.target.averageValue) <= 0:
        problem = "must specify a positive target averageValue"
        errors.append(field.required(f"{path}.target.averageValue", problem))
    return errors


def _resource(path: str, source: autoscaling.ResourceMetricSource, options: Options) -> Iterator[Cause]:
    """validateResourceSource."""
    if not source.name:
        yield field.required(f"{path}.name", "must specify a resource name")
    yield from _of_requests(f"{path}.target", source.target)


def _container_resource(
    path: str, source: autoscaling.ContainerResourceMetricSource, options: Options
) -> Iterator[Cause]:
    """validateContainerResourceSource."""
    if not source.name:
        yield field.required(f"{path}.name", "must specify a resource name")
    else:
        yield from container_resource_name(f"{path}.name", source.name)
    if not source.container:
        yield field.required(f"{path}.container", "must specify a container")
    else:
        yield from field.check(f"{path}.container", source.container, names.dns_label)
    yield from _of_requests(f"{path}.target", source.target)


# In the order in which upstream looks for them.
_RULES: Mapping[str, Callable[[str, Any, Options], Iterable[Cause]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _identifier(path: str, metric: autoscaling.MetricIdentifier) -> list[Cause]:
    """validateMetricIdentifier."""
    if not metric.name:
        return [field.required(f"{path}.name", "must specify a metric name")]
    return field.check(f"{path}.name", metric.name, names.path_segment)


def _target(path: str, target: autoscaling.MetricTarget) -> Iterator[Cause]:
    """validateMetricTarget."""
    if not target.type:
        yield field.required(f"{path}.type", "must specify a metric target type")
    if target.type not in _TARGET_TYPES:
        yield field.invalid(f"{path}.type", target.type, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        quantity = getattr(target, name)
        if target.HasField(name) and _sign(quantity) <= 0:
            yield field.invalid(f"{path}.{name}", quantity.string or "0", "must be positive")
    if target.HasField("averageUtilization") and target.averageUtilization < 1:
        yield field.invalid(f"{path}.averageUtilization", target.averageUtilization, "must be greater than 0")


def _either_value(path: str, target: autoscaling.MetricTarget, problem: str) -> list[Cause]:
    if target.HasField("value") or target.HasField("averageValue"):
        return []
    return [field.required(f"{path}.averageValue", problem)]


def _of_requests(path: str, target: autoscaling.MetricTarget) -> Iterator[Cause]:
    """Check a target of the containers' usage: in percent of their requests, or an amount."""
    yield from _target(path, target)
    share, amount = target.HasField("averageUtilization"), target.HasField("averageValue")
    if not share and not amount:
        problem = "must set either a target raw value or a target utilization"
        yield field.required(f"{path}.averageUtilization", problem)
    if share and amount:
        problem = "may not set both a target raw value and a target utilization"
        yield field.forbidden(f"{path}.averageValue", problem)


def _behavior(path: str, behavior: autoscaling.HorizontalPodAutoscalerBehavior) -> Iterator[Cause]:
    """validateBehavior."""
    for name in ("scaleUp", "scaleDown"):
        if behavior.HasField(name):
            yield from _scaling_rules(f"{path}.{name}", getattr(behavior, name))


def _scaling_rules(path: str, rules: autoscaling.HPAScalingRules) -> Iterator[Cause]:
    """validateScalingRules."""
    if rules.HasField("stabilizationWindowSeconds"):
        seconds = rules.stabilizationWindowSeconds
        yield from _within(f"{path}.stabilizationWindowSeconds", seconds, 0, _WINDOW_SECONDS_MAX)
    if rules.HasField("selectPolicy") and rules.selectPolicy not in _SELECT_POLICIES:
        yield field.not_supported(f"{path}.selectPolicy", rules.selectPolicy, _SELECT_POLICIES)
    if not rules.policies:
        yield field.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.policies):
        yield from _scaling_policy(f"{path}.policies[{index}]", policy)
    if rules.HasField("tolerance") and _sign(rules.tolerance) < 0:
        yield field.invalid(f"{path}.tolerance", rules.tolerance.string, NOT_NEGATIVE)


def _scaling_policy(path: str, policy: autoscaling.HPAScalingPolicy) -> Iterator[Cause]:
    """validateScalingPolicy."""
    yield from field.one_of(f"{path}.type", policy.type, _POLICY_TYPES)
    if policy.value <= 0:
        yield field.invalid(f"{path}.value", policy.value, "must be greater than zero")
    yield from _within(f"{path}.periodSeconds", policy.periodSeconds, 1, _PERIOD_SECONDS_MAX)


def _within(path: str, seconds: int, least: int, most: int) -> list[Cause]:
    if seconds < least:
        than = "greater than zero" if least else "greater than or equal to zero"
        return [field.invalid(path, seconds, f"must be {than}")]
    return [field.invalid(path, seconds, f"must be less than or equal to {most}")] if seconds > most else []


def _sign(quantity: resource.Quantity) -> int:
    return Quantity.parse(quantity.string or "0").sign
