"""PodDisruptionBudgets (kube-apiserver 1.36, pkg/apis/policy/validation)."""

from __future__ import annotations

from typing import Any

from apiserver.validation import conditions, field, names
from apiserver.validation.selectors import label_selector
from machinery.api.errors import Cause
from machinery.api.pb import intstr, policy
from machinery.wire import codec

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_INT = 0


def budget(obj: policy.PodDisruptionBudget) -> list[Cause]:
    """The spec."""
    spec = obj.spec
    errors: list[Cause] = []
    least, most = spec.HasField("minAvailable"), spec.HasField("maxUnavailable")
    if least and most:
        value = {
            "MinAvailable": _number(spec.minAvailable),
            "Selector": codec.to_json(spec.selector) if spec.HasField("selector") else None,
            "MaxUnavailable": _number(spec.maxUnavailable),
            "UnhealthyPodEvictionPolicy": (
                spec.unhealthyPodEvictionPolicy if spec.HasField("unhealthyPodEvictionPolicy") else None
            ),
        }
        errors.append(field.invalid("spec", value, "minAvailable and maxUnavailable cannot be both set"))
    if least:
        errors += int_or_percent("spec.minAvailable", spec.minAvailable)
    if most:
        errors += int_or_percent("spec.maxUnavailable", spec.maxUnavailable)
    if spec.HasField("selector"):
        errors += label_selector("spec.selector", spec.selector)
    if spec.HasField("unhealthyPodEvictionPolicy") and spec.unhealthyPodEvictionPolicy not in _POLICIES:
        errors.append(
            field.not_supported("spec.unhealthyPodEvictionPolicy", spec.unhealthyPodEvictionPolicy, _POLICIES)
        )
    return errors


def _number(value: intstr.IntOrString) -> Any:
    return value.intVal if value.type == _INT else value.strVal


def int_or_percent(path: str, value: intstr.IntOrString, *, most: bool = True) -> list[Cause]:
    """Not negative; a text is a percentage, at most 100 where there is a `most`."""
    if value.type == _INT:
        return field.non_negative(path, value.intVal)
    if not names.is_percent(value.strVal):
        return [field.invalid(path, value.strVal, names.PERCENT_PROBLEM)]
    digits = value.strVal[:-1].lstrip("0")
    # Python refuses to read thousands of digits.
    if most and (len(digits) > 3 or int(digits or "0") > 100):
        return [field.invalid(path, value.strVal, "must not be greater than 100%")]
    return []


def is_zero(value: intstr.IntOrString) -> bool:
    """Upstream: getIntOrPercentValue, to which a text that is no number is 0, too."""
    if value.type == _INT:
        return value.intVal == 0
    digits = value.strVal.removesuffix("%")
    return not (digits.isascii() and digits.isdigit()) or not digits.strip("0")


def status(found: policy.PodDisruptionBudgetStatus) -> list[Cause]:
    errors = conditions.conditions("status.conditions", found.conditions)
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += field.non_negative(f"status.{name}", getattr(found, name))
    return errors
