"""Numbers that may be percentages (kube-apiserver 1.36, pkg/apis/apps/validation)."""

from __future__ import annotations

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import intstr

_INT = 0


def int_or_percent(path: str, value: intstr.IntOrString, *, limited: bool = True) -> list[Cause]:
    """Check a number that must not be negative, or a percentage: at most 100% where it is `limited`."""
    if value.type == _INT:
        return field.non_negative(path, value.intVal)
    if not names.is_percent(value.strVal):
        return [field.invalid(path, value.strVal, names.PERCENT_PROBLEM)]
    digits = value.strVal[:-1].lstrip("0")
    # Python refuses to read thousands of digits.
    if limited and (len(digits) > 3 or int(digits or "0") > 100):
        return [field.invalid(path, value.strVal, "must not be greater than 100%")]
    return []


def is_zero(value: intstr.IntOrString) -> bool:
    """Return whether a value is 0 or 0%; as upstream's getIntOrPercentValue, a malformed text counts as 0."""
    if value.type == _INT:
        return value.intVal == 0
    digits = value.strVal.removesuffix("%")
    return not (digits.isascii() and digits.isdigit()) or not digits.strip("0")


def shown_value(value: intstr.IntOrString) -> int | str:
    """Return the value as error messages show it."""
    return value.intVal if value.type == _INT else value.strVal
