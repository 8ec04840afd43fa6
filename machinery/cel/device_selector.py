"""Compile selectors, and evaluate them for a device.

Source: k8s.io/dynamic-resource-allocation/cel 1.36. Errors are CompileError and EvaluationError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from nominee.machinery.api.pb import devices
from nominee.machinery.cel.checked import read
from nominee.machinery.cel.cost import COST_MAX, MOST, worst_cost
from nominee.machinery.cel.errors import (
    CompileError,
    CostError,
    EvaluationError,
    compile_text,
    evaluation_text,
)
from nominee.machinery.cel.functions import Value, quantity_value, semver_value
from nominee.machinery.cel.semver import SemverError
from nominee.machinery.cel.tokens import SIZE_MAX, size_at_worst, with_empty_domains
from nominee.machinery.resources.quantity import QuantityError

if TYPE_CHECKING:
    from nominee.machinery.cel.environment import CelObject

_COMPILED_MAX = 256
DeviceValue = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Features:
    """`list_attributes`: DRAListTypeAttributes; `multiple_allocations`: DRAConsumableCapacity."""

    list_attributes: bool = False
    multiple_allocations: bool = True


class DeviceSelector:
    """One expression, compiled; use `compile_selector`."""

    __slots__ = ("_error_type", "_program", "expression")

    def __init__(self, expression: str, program: CelObject, error_type: CelObject) -> None:
        self.expression = expression
        self._program = program
        self._error_type = error_type

    def matches(self, device: DeviceValue) -> bool:
        """Return whether the device (see `device_value`) matches.

        Raises:
            EvaluationError: the expression fails for this device.
        """
        try:
            result = self._program.eval(data={"device": device})
        except RuntimeError as error:
            raise EvaluationError(evaluation_text(str(error))) from error
        kind, value = result.type(), result.value()
        if kind == self._error_type:
            raise EvaluationError(evaluation_text(str(value)))
        if not isinstance(value, bool):
            raise EvaluationError(f"CEL result of type {kind.name().lower()} could not be converted to bool")
        return value


@lru_cache(maxsize=_COMPILED_MAX)
def compile_selector(expression: str, features: Features = Features()) -> DeviceSelector:
    """Return the compiled expression, from a cache of the last ones.

    Raises:
        CompileError: the expression does not compile.
    """
    from nominee.machinery.cel import environment  # the library loads with the first expression

    compiled = _checked(expression, features, environment)
    type_ = compiled.return_type()
    if type_ not in (environment.BOOL, environment.DYN):
        raise CompileError(f"must evaluate to bool or the unknown type, not {type_.name().lower()}")
    if size_at_worst(expression) > SIZE_MAX or _worst_cost(compiled, features) > COST_MAX:
        raise CostError("too complex, exceeds cost limit")
    evaluating = environment.evaluating(list_attributes=features.list_attributes)
    try:
        program = evaluating.compile(with_empty_domains(expression))
    except RuntimeError:
        # What the rewriting does not know (`has(device.attributes.x)`) is evaluated as it was written.
        program = evaluating.compile(expression)
    return DeviceSelector(expression, program, environment.ERROR)


def _worst_cost(compiled: CelObject, features: Features) -> int:
    try:
        return worst_cost(read(compiled.serialize()), list_attributes=features.list_attributes)
    except RecursionError:
        return MOST


def _checked(expression: str, features: Features, environment: CelObject) -> CelObject:
    """Return the expression as the library has checked it."""
    how = {
        "list_attributes": features.list_attributes,
        "multiple_allocations": features.multiple_allocations,
    }
    try:
        return environment.checking(**how).compile(expression)
    except RuntimeError as error:
        text = str(error)
    if "undeclared reference to 'device' " in text:
        try:
            return environment.checking(**how, whole=True).compile(expression)
        except RuntimeError as error:
            text = str(error)
    raise CompileError(f"compilation failed: {compile_text(text)}")


def device_value(driver: str, device: devices.Device, features: Features = Features()) -> DeviceValue:
    """Return the device as expressions see it: attributes and capacity by domain, then by name.

    Raises:
        EvaluationError: an attribute has no value.
    """
    attributes: dict[str, dict[str, Value]] = {}
    for name, attribute in device.attributes.items():
        domain, _, identifier = name.rpartition("/")
        try:
            value = _attribute(attribute, features)
        except (SemverError, ValueError) as error:
            raise EvaluationError(f"attribute {name}: {error}") from error
        attributes.setdefault(domain or driver, {})[identifier] = value
    capacity: dict[str, dict[str, Value]] = {}
    for name, amount in device.capacity.items():
        domain, _, identifier = name.rpartition("/")
        try:
            capacity.setdefault(domain or driver, {})[identifier] = quantity_value(amount.value.string or "0")
        except QuantityError as error:
            raise EvaluationError(f"capacity {name}: {error}") from error
    seen: dict[str, Value] = {"driver": driver, "attributes": attributes, "capacity": capacity}
    if features.multiple_allocations:
        seen["allowMultipleAllocations"] = device.allowMultipleAllocations
    return seen


def _attribute(attribute: devices.DeviceAttribute, features: Features) -> Value:
    if attribute.HasField("int"):
        return attribute.int
    if attribute.HasField("bool"):
        return attribute.bool
    if attribute.HasField("string"):
        return attribute.string
    if attribute.HasField("version"):
        try:
            return semver_value(attribute.version)
        except SemverError as error:
            raise SemverError(f"parse semantic version: {error}") from error
    if features.list_attributes:
        for values in (attribute.ints, attribute.bools, attribute.strings):
            if values:
                return list(values)
        if attribute.versions:
            return [semver_value(version) for version in attribute.versions]
    raise ValueError("unsupported attribute value")
