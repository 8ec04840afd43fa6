"""HorizontalPodAutoscalers (kube-apiserver 1.36, pkg/apis/autoscaling/validation)."""

from __future__ import annotations

from apiserver.validation import field, names
from machinery.api.errors import Cause
from machinery.api.pb import autoscaling

_LEAST_REPLICAS = 1
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def autoscaler(obj: autoscaling.HorizontalPodAutoscaler) -> list[Cause]:
    spec = obj.spec
    errors: list[Cause] = []
    if spec.HasField("minReplicas") and spec.minReplicas < _LEAST_REPLICAS:
        problem = f"must be greater than or equal to {_LEAST_REPLICAS}"
        errors.append(field.invalid("spec.minReplicas", spec.minReplicas, problem))
    if spec.maxReplicas < 1:
        errors.append(field.invalid("spec.maxReplicas", spec.maxReplicas, "must be greater than 0"))
    if spec.HasField("minReplicas") and spec.maxReplicas < spec.minReplicas:
        problem = "must be greater than or equal to `minReplicas`"
        errors.append(field.invalid("spec.maxReplicas", spec.maxReplicas, problem))
    errors += _reference("spec.scaleTargetRef", spec.scaleTargetRef)
    for index, metric in enumerate(spec.metrics):
        errors += _metric(f"spec.metrics[{index}]", metric)
    return errors


def status(new: autoscaling.HorizontalPodAutoscaler, old: autoscaling.HorizontalPodAutoscaler) -> list[Cause]:
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


def _metric(path: str, metric: autoscaling.MetricSpec) -> list[Cause]:
    errors: list[Cause] = []
    if not metric.type:
        errors.append(field.required(f"{path}.type", "must specify a metric source type"))
    wanted = _SOURCES.get(metric.type)
    if wanted is None:
        errors.append(field.not_supported(f"{path}.type", metric.type, sorted(_SOURCES)))
    present = [name for name in _SOURCES.values() if metric.HasField(name)]
    if wanted is not None and wanted not in present:
        problem = "must populate information for the given metric source"
        errors.append(field.required(f"{path}.{wanted}", problem))
    if len(present) != 1:
        problem = "must populate the given metric source only"
        errors += [field.forbidden(f"{path}.{name}", problem) for name in present if name != wanted]
    return errors
