"""HorizontalPodAutoscalers: autoscaling/v2, which is stored, and autoscaling/v1 (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.kinds.autoscaling import conversion, validation
from nominee.apiserver.kinds.rules import Conversion, KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import UNKNOWN, UNSET
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import autoscaling
from nominee.machinery.defaults.watched import AUTOSCALER_TOLERANCE_SINCE

_SPEC = "horizontalpodautoscalerspec-autoscaling-v2"
# The field of a metric that its type names.
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metrics(shown: Sequence[str]) -> str:
    if not shown:
        return "<none>"
    first = ", ".join(shown[:2])
    return f"{first} + {len(shown) - 2} more..." if len(shown) > 2 else first


def _metric(metric: autoscaling.MetricSpec, statuses: Sequence[autoscaling.MetricStatus], index: int) -> str:
    """Return the cell of a metric, `cpu: 10%/80%`: the current value and the target."""
    field = _SOURCES.get(metric.type)
    if field is None:
        return "<unknown type>"
    source = getattr(metric, field)
    target, current = source.target, None
    if len(statuses) > index and statuses[index].HasField(field):
        current = getattr(statuses[index], field).current
    if field in ("resource", "containerResource"):
        return f"{source.name}: {_utilization(target, current)}"
    if field == "pods":
        return _average(target, current)
    if target.HasField("averageValue"):
        return f"{_average(target, current)} (avg)"
    found = UNKNOWN if current is None else _shown(current, "value")
    return f"{found}/{_shown(target, 'value')}"


def _shown(values: autoscaling.MetricTarget | autoscaling.MetricValueStatus, name: str) -> str:
    """Return a quantity, or Go's text for a nil pointer."""
    return str(getattr(values, name).string) if values.HasField(name) else "<nil>"


def _average(target: autoscaling.MetricTarget, current: autoscaling.MetricValueStatus | None) -> str:
    found = UNKNOWN
    if current is not None and current.HasField("averageValue"):
        found = current.averageValue.string
    return f"{found}/{_shown(target, 'averageValue')}"


def _utilization(target: autoscaling.MetricTarget, current: autoscaling.MetricValueStatus | None) -> str:
    if target.HasField("averageValue"):
        return _average(target, current)
    found = UNKNOWN
    if current is not None and current.HasField("averageUtilization"):
        found = f"{current.averageUtilization}%"
    wanted = f"{target.averageUtilization}%" if target.HasField("averageUtilization") else "<auto>"
    return f"{found}/{wanted}"


def _row(obj: autoscaling.HorizontalPodAutoscaler, now: float) -> Cells:
    spec, status = obj.spec, obj.status
    target = spec.scaleTargetRef
    least = str(spec.minReplicas) if spec.HasField("minReplicas") else UNSET
    shown = [_metric(metric, status.currentMetrics, index) for index, metric in enumerate(spec.metrics)]
    return [f"{target.kind}/{target.name}", _metrics(shown), least, spec.maxReplicas, status.currentReplicas]


def _rules(of: autoscaling.HorizontalPodAutoscaler) -> Sequence[autoscaling.HPAScalingRules]:
    """Return the rules of an autoscaler that have a tolerance."""
    behavior = of.spec.behavior
    return [rules for rules in (behavior.scaleUp, behavior.scaleDown) if rules.HasField("tolerance")]


class HorizontalPodAutoscalerStrategy(Strategy[autoscaling.HorizontalPodAutoscaler]):
    """The main resource."""

    def validate(self, new: autoscaling.HorizontalPodAutoscaler, env: Environment) -> list[Cause]:
        """Check metadata and spec."""
        options = validation.options_for(new, None, env.gates)
        return [*self.validate_metadata(new), *validation.validate(new, options)]

    def validate_update(
        self,
        new: autoscaling.HorizontalPodAutoscaler,
        old: autoscaling.HorizontalPodAutoscaler,
        env: Environment,
    ) -> list[Cause]:
        """Check the change of the metadata, and the spec."""
        options = validation.options_for(new, old, env.gates)
        return [*super().validate_update(new, old, env), *validation.validate(new, options)]

    def drop_disabled(
        self,
        new: autoscaling.HorizontalPodAutoscaler,
        old: autoscaling.HorizontalPodAutoscaler | None,
        env: Environment,
    ) -> None:
        if env.gates.version >= AUTOSCALER_TOLERANCE_SINCE or (old is not None and _rules(old)):
            return
        for rules in _rules(new):
            rules.ClearField("tolerance")


_STATUS = StatusStrategy(kinds.HORIZONTAL_POD_AUTOSCALER, validation.validate_status)
_STRATEGY = HorizontalPodAutoscalerStrategy(kinds.HORIZONTAL_POD_AUTOSCALER, {"status": _STATUS})
_COLUMNS = Columns(
    _row,
    NAME,
    Column("Reference", f"{_SPEC}#scaleTargetRef"),
    Column("Targets", f"{_SPEC}#metrics"),
    Column("MinPods", f"{_SPEC}#minReplicas"),
    Column("MaxPods", f"{_SPEC}#maxReplicas"),
    Column("Replicas", "horizontalpodautoscalerstatus-autoscaling-v2#currentReplicas"),
    AGE,
)
V2 = KindRules(
    kind=kinds.HORIZONTAL_POD_AUTOSCALER,
    strategy=_STRATEGY,
    columns=_COLUMNS,
)
V1 = KindRules(
    kind=kinds.HORIZONTAL_POD_AUTOSCALER_V1,
    strategy=_STRATEGY,
    columns=_COLUMNS,
    conversion=Conversion(conversion.to_v2, conversion.convert),
)
