"""HorizontalPodAutoscalers: stored as autoscaling/v2, and shown by autoscaling/v1 too.

What v1 has no field for lies in annotations there, so that nothing is lost on the way through an old client.
Source: kube-apiserver 1.36, pkg/apis/autoscaling/v1/conversion.go and pkg/apis/autoscaling/annotations.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.validation.go_dump import dump
from nominee.machinery.api.kinds import HORIZONTAL_POD_AUTOSCALER_V1
from nominee.machinery.api.pb import autoscaling as v2
from nominee.machinery.wire import codec, envelope
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as v1

M = TypeVar("M", bound=Message)
_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, STATUSES, CONDITIONS, BEHAVIOR = (
    f"{_PREFIX}{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)
# By type of metric: where v2 has it, and what v1 calls it. * is "target" of what shall be, "current" of
# what is.
_NAMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "object": (
        ("describedObject", "target"), ("metric.name", "metricName"), ("*.value", "*Value"),
        ("metric.selector", "selector"), ("*.averageValue", "averageValue"),
    ),
    "pods": (
        ("metric.name", "metricName"), ("*.averageValue", "*AverageValue"), ("metric.selector", "selector"),
    ),
    "resource": (
        ("name", "name"), ("*.averageUtilization", "*AverageUtilization"),
        ("*.averageValue", "*AverageValue"),
    ),
    "containerResource": (
        ("name", "name"), ("*.averageUtilization", "*AverageUtilization"),
        ("*.averageValue", "*AverageValue"), ("container", "container"),
    ),
    "external": (
        ("metric.name", "metricName"), ("metric.selector", "metricSelector"), ("*.value", "*Value"),
        ("*.averageValue", "*AverageValue"),
    ),
}  # fmt: skip


def convert(stored: CachedObject) -> CachedObject:
    """Return a stored autoscaler as a watch or a list of autoscaling/v1 shows it."""
    shown = to_v1(stored.message)
    shown.metadata.resourceVersion = ""
    data = envelope.encode(shown)
    return CachedObject(
        HORIZONTAL_POD_AUTOSCALER_V1, stored.namespace, stored.name, stored.revision, stored=data
    )


def to_v1(stored: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """Return a stored autoscaler as a message of autoscaling/v1."""
    made = v1.HorizontalPodAutoscaler()
    made.metadata.CopyFrom(stored.metadata)
    spec, status = stored.spec, stored.status
    _copy(spec, made.spec, ("scaleTargetRef", "minReplicas", "maxReplicas"))
    _copy(status, made.status, ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"))
    for metric in (each for each in spec.metrics if _about_cpu(each)):
        if metric.resource.target.HasField("averageUtilization"):
            made.spec.targetCPUUtilizationPercentage = metric.resource.target.averageUtilization
        break
    for current in (each for each in status.currentMetrics if _about_cpu(each)):
        if current.resource.current.HasField("averageUtilization"):
            made.status.currentCPUUtilizationPercentage = current.resource.current.averageUtilization
    annotations = {
        METRICS: list(_old((each for each in spec.metrics if _beyond_cpu(each)), v1.MetricSpec, "target")),
        STATUSES: list(_old(status.currentMetrics, v1.MetricStatus, "current")),
        CONDITIONS: [codec.to_json(condition) for condition in status.conditions],
        BEHAVIOR: dump(spec.behavior) if spec.HasField("behavior") else None,
    }
    for name, value in annotations.items():
        if value:
            made.metadata.annotations[name] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return made


def to_v2(shown: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """Return an autoscaling/v1 autoscaler as it is stored; annotations that cannot be read are dropped."""
    made = v2.HorizontalPodAutoscaler()
    made.metadata.CopyFrom(shown.metadata)
    spec, status = shown.spec, shown.status
    _copy(spec, made.spec, ("scaleTargetRef", "minReplicas", "maxReplicas"))
    _copy(status, made.status, ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"))
    if spec.HasField("targetCPUUtilizationPercentage"):
        metric = made.spec.metrics.add(type="Resource")
        metric.resource.name = "cpu"
        metric.resource.target.type = "Utilization"
        metric.resource.target.averageUtilization = spec.targetCPUUtilizationPercentage
    made.spec.metrics.extend(_read_annotation(shown, METRICS, v2.MetricSpec, "target"))
    statuses = list(_read_annotation(shown, STATUSES, v2.MetricStatus, "current"))
    if not statuses and status.HasField("currentCPUUtilizationPercentage"):
        current = made.status.currentMetrics.add(type="Resource")
        current.resource.name = "cpu"
        current.resource.current.averageUtilization = status.currentCPUUtilizationPercentage
    made.status.currentMetrics.extend(statuses)
    made.status.conditions.extend(
        _read_annotation(shown, CONDITIONS, v2.HorizontalPodAutoscalerCondition, "")
    )
    for behavior in _read_annotation(shown, BEHAVIOR, v2.HorizontalPodAutoscalerBehavior, ""):
        made.spec.behavior.CopyFrom(behavior)
    drop_annotations(made)
    return made


def drop_annotations(obj: v2.HorizontalPodAutoscaler) -> None:
    """Remove in place the annotations that are for clients of autoscaling/v1 alone."""
    for name in (METRICS, STATUSES, CONDITIONS, BEHAVIOR):
        obj.metadata.annotations.pop(name, None)


def _copy(source: Message, target: Message, names: Iterable[str]) -> None:
    """Fields of the same name and form; of two packages' own messages where they are messages."""
    for name in names:
        value = getattr(source, name)
        if not source.HasField(name):
            continue
        if hasattr(value, "SerializeToString"):
            getattr(target, name).MergeFromString(value.SerializeToString())
            getattr(target, name).SetInParent()
        else:
            setattr(target, name, value)


def _about_cpu(metric: v2.MetricSpec | v2.MetricStatus) -> bool:
    return bool(metric.type == "Resource" and metric.HasField("resource") and metric.resource.name == "cpu")


def _beyond_cpu(metric: v2.MetricSpec) -> bool:
    """Whether v1 has no field for it."""
    return not (_about_cpu(metric) and metric.resource.target.HasField("averageUtilization"))


def _old(
    metrics: Iterable[v2.MetricSpec | v2.MetricStatus], message: type[Message], word: str
) -> Iterator[dict[str, Any]]:
    """v1's JSON of v2's metrics."""
    for metric in metrics:
        document = codec.to_json(metric)
        made = {"type": document["type"]}
        for source, names in _NAMES.items():
            if source in document:
                made[source] = {
                    old.replace("*", word): value
                    for new, old in names
                    if (value := _get(document[source], new.replace("*", word))) is not None
                }
        # Once through the message: v1 always writes some fields.
        yield codec.to_json(codec.from_json(message, made))


def _read_annotation(
    shown: v1.HorizontalPodAutoscaler, name: str, message: type[M], word: str
) -> Iterator[M]:
    """Return the contents of an annotation of v1 as messages of v2."""
    if name not in shown.metadata.annotations:
        return
    try:
        documents = json.loads(shown.metadata.annotations[name])
        if name == BEHAVIOR:
            documents = [_small(documents)]
        yield from [codec.from_json(message, _new(each, word) if word else each) for each in documents]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return


def _new(document: dict[str, Any], word: str) -> dict[str, Any]:
    """v2's JSON of v1's metric."""
    made: dict[str, Any] = {"type": document["type"]}
    for source, names in _NAMES.items():
        if source not in document:
            continue
        found: dict[str, Any] = {}
        for new, old in names:
            value = document[source].get(old.replace("*", word))
            if value is not None:
                _set(found, new.replace("*", word), value)
        if word == "target":
            target = found.setdefault("target", {})
            target["type"] = _target_type(source, target)
        made[source] = found
    return made


def _target_type(source: str, target: Mapping[str, Any]) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    if source in ("object", "external") and "averageValue" not in target:
        return "Value"
    return "AverageValue"


def _get(document: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    return document.get(head, {}).get(rest) if rest else document.get(head)


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    head, _, rest = path.partition(".")
    if rest:
        document.setdefault(head, {})[rest] = value
    else:
        document[head] = value


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _small(each) for key, each in value.items() if each is not None}
    return [_small(each) for each in value] if isinstance(value, list) else value
