"""Terms that claims, classes and slices of devices have in common (kube-apiserver 1.36)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from nominee.apiserver.validation import field, lists, names
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices
from nominee.machinery.cel.device_selector import compile_selector
from nominee.machinery.cel.errors import CompileError, CostError

SELECTORS_MAX = 32
CONFIG_MAX = 32
_EXPRESSION_BYTES_MAX = 10 * 1024
_PARAMETERS_BYTES_MAX = 10 * 1024
_CONDITIONS_MAX = 4
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")


def selectors(path: str, found: Sequence[devices.DeviceSelector]) -> list[Cause]:
    return lists.each(path, found, SELECTORS_MAX, _selector)


def _selector(path: str, selector: devices.DeviceSelector) -> list[Cause]:
    if not selector.HasField("cel"):
        return [field.required(f"{path}.cel")]
    if len(selector.cel.expression.encode()) > _EXPRESSION_BYTES_MAX:
        return [field.too_long(f"{path}.cel.expression", _EXPRESSION_BYTES_MAX)]
    try:
        compile_selector(selector.cel.expression)
    except CostError as error:
        return [field.forbidden(f"{path}.cel.expression", str(error))]
    except CompileError as error:
        return [field.invalid(f"{path}.cel.expression", selector.cel.expression, str(error))]
    return []


def configuration(path: str, found: devices.DeviceConfiguration) -> list[Cause]:
    if not found.HasField("opaque"):
        return [field.required(f"{path}.opaque")]
    at = f"{path}.opaque"
    errors = list(device_names.driver(f"{at}.driver", found.opaque.driver))
    return errors + raw(f"{at}.parameters", found.opaque.parameters.raw, _PARAMETERS_BYTES_MAX)


def raw(path: str, data: bytes, bytes_max: int) -> list[Cause]:
    """Check raw data that must be a JSON object."""
    if not data:
        return [field.required(path)]
    if len(data) > bytes_max:
        return [field.too_long(path, bytes_max)]
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        return [field.invalid(path, "<value omitted>", f"error parsing data as JSON: {error}")]
    if value is None:
        return [field.required(path)]
    if not isinstance(value, dict):
        return [field.invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


def label_value(path: str, value: str) -> list[Cause]:
    return field.check(path, value, names.label_value)


def label_name(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.qualified_name)


def _effect(path: str, effect: str) -> list[Cause]:
    return field.one_of(path, effect, _EFFECTS)


def taint(path: str, found: devices.DeviceTaint) -> list[Cause]:
    """Check a taint of a device (KEP-5055)."""
    errors = label_name(f"{path}.key", found.key)
    if found.value:
        errors += label_value(f"{path}.value", found.value)
    if not found.effect:
        return [*errors, field.required(f"{path}.effect")]
    return errors + _effect(f"{path}.effect", found.effect)


def toleration(path: str, found: devices.DeviceToleration) -> list[Cause]:
    """Check a toleration of taints of devices (KEP-5055)."""
    errors = label_name(f"{path}.key", found.key) if found.key else []
    if found.operator == "Exists":
        if found.value:
            errors.append(field.invalid(f"{path}.value", found.value, "must be empty for operator `Exists`"))
    elif found.operator == "Equal":
        errors += label_value(f"{path}.value", found.value)
    elif not found.operator:
        errors.append(field.required(f"{path}.operator"))
    else:
        errors.append(field.not_supported(f"{path}.operator", found.operator, _OPERATORS))
    return errors + (_effect(f"{path}.effect", found.effect) if found.effect else [])


def binding_conditions(path: str, conditions: Sequence[str], failures: Sequence[str]) -> Iterator[Cause]:
    """Check the conditions that a device sets before pods are bound (KEP-5007)."""
    at, other = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    yield from lists.distinct(at, conditions, _CONDITIONS_MAX, label_name)
    yield from lists.distinct(other, failures, _CONDITIONS_MAX, label_name)
    for index, name in enumerate(failures):
        if name in conditions:
            problem = "bindingFailureConditions must not overlap with bindingConditions"
            yield field.invalid(f"{other}[{index}]", name, problem)
    if failures and not conditions:
        yield field.invalid(at, None, "bindingConditions are required to use bindingFailureConditions")
    if conditions and not failures:
        yield field.invalid(other, None, "bindingFailureConditions are required to use bindingConditions")
