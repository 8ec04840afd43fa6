"""DaemonSets (kube-apiserver 1.36, pkg/apis/apps/validation)."""

from __future__ import annotations

from apiserver.validation import field, templates
from apiserver.validation.budgets import int_or_percent, is_zero
from apiserver.validation.go_dump import dump
from apiserver.validation.pod_options import PodOptions
from machinery.api.errors import Cause
from machinery.api.pb import apps, intstr
from machinery.wire import codec

_TYPES = ("RollingUpdate", "OnDelete")
_COUNTS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
)  # fmt: skip
_INT = 0


def daemon_set(obj: apps.DaemonSet, options: PodOptions) -> list[Cause]:
    spec = obj.spec
    errors = templates.selected(
        spec.selector if spec.HasField("selector") else None,
        spec.template.metadata.labels,
        "empty selector is invalid for daemonset",
        required=False,
    )
    errors += templates.pod_template("spec.template", spec.template, options)
    errors += templates.always_restarts("spec.template", spec.template, "DaemonSet")
    errors += field.non_negative("spec.minReadySeconds", spec.minReadySeconds)
    errors += _strategy("spec.updateStrategy", spec.updateStrategy)
    if spec.HasField("revisionHistoryLimit"):
        errors += field.non_negative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
    return errors


def _strategy(path: str, strategy: apps.DaemonSetUpdateStrategy) -> list[Cause]:
    if strategy.type == "OnDelete":
        return []
    if strategy.type != "RollingUpdate":
        return [field.not_supported(path, dump(strategy), _TYPES)]
    if not strategy.HasField("rollingUpdate"):
        return [field.required(f"{path}.rollingUpdate")]
    rolling, at = strategy.rollingUpdate, f"{path}.rollingUpdate"
    errors = int_or_percent(f"{at}.maxUnavailable", rolling.maxUnavailable)
    errors += int_or_percent(f"{at}.maxSurge", rolling.maxSurge)
    fewer, more = not is_zero(rolling.maxUnavailable), not is_zero(rolling.maxSurge)
    if fewer and more:
        problem = "may not be set when maxUnavailable is non-zero"
        errors.append(field.invalid(f"{at}.maxSurge", _shown(rolling.maxSurge), problem))
    elif not fewer and not more:
        problem = "cannot be 0 when maxSurge is 0"
        errors.append(field.invalid(f"{at}.maxUnavailable", _shown(rolling.maxUnavailable), problem))
    return errors


def _shown(value: intstr.IntOrString) -> int | str:
    return value.intVal if value.type == _INT else value.strVal


def change(new: apps.DaemonSet, old: apps.DaemonSet) -> list[Cause]:
    if new.spec.selector == old.spec.selector:
        return []
    return [field.invalid("spec.selector", codec.to_json(new.spec.selector), field.IMMUTABLE)]


def status(new: apps.DaemonSet, old: apps.DaemonSet) -> list[Cause]:
    errors: list[Cause] = []
    for name in _COUNTS:
        errors += field.non_negative(f"status.{name}", getattr(new.status, name))
    before, after = old.status.collisionCount, new.status.collisionCount
    if old.status.HasField("collisionCount") and after < before:
        errors.append(field.invalid("status.collisionCount", after, "cannot be decremented"))
    return errors
