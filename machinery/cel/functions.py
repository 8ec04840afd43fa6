"""Kubernetes' own CEL functions for devices: quantity(), semver() and their methods.

A quantity or version travels through the library as a small message (`kubernetes.Quantity`), whose text is
normal, so that equal values are equal messages. Source: k8s.io/apiserver/pkg/cel/library 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from nominee.machinery.cel.semver import Semver, SemverError
from nominee.machinery.resources.quantity import Quantity, QuantityError

TypeName = Literal["string", "int", "bool", "double", "dyn", "list", "Quantity", "Semver"]
_PACKAGE = "kubernetes"
Value = Any
"""A value of CEL: a number, a text, a list, or a message of `message_pool`."""


@cache
def message_pool() -> descriptor_pool.DescriptorPool:
    """Return a descriptor pool for CEL alone, which the wire does not use."""
    file = descriptor_pb2.FileDescriptorProto(name="kubernetes/cel.proto", package=_PACKAGE, syntax="proto3")
    for name in ("Quantity", "Semver"):
        file.message_type.add(name=name).field.add(name="text", number=1, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def _message(name: str) -> Value:
    return message_factory.GetMessageClass(message_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@lru_cache(maxsize=4096)
def quantity_value(text: str) -> Value:
    """Return the message of a quantity.

    Raises:
        QuantityError: the text is not a quantity.
    """
    return _message("Quantity")(text=Quantity.parse(text).decimal())


@lru_cache(maxsize=4096)
def semver_value(text: str, normalize: bool = False) -> Value:
    """Return the message of a version.

    Raises:
        SemverError: the text is not a version.
    """
    return _message("Semver")(text=str(Semver.parse(text, normalize=normalize)))


def _quantity(value: Value) -> Quantity:
    return Quantity.parse(value.text)


def _is_quantity(text: str) -> bool:
    try:
        quantity_value(text)
    except QuantityError:
        return False
    return True


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver_value(text, normalize)
    except SemverError:
        return False
    return True


def _compare(left: Any, right: Value) -> int:
    if type(left) is not type(right):
        raise ValueError("no such overload")
    if left.DESCRIPTOR.name == "Semver":
        return Semver.parse(left.text).compare(Semver.parse(right.text))
    return _quantity(left).compare(_quantity(right))


def _as_quantity(value: Value) -> Quantity:
    return Quantity.of(value) if isinstance(value, int) else _quantity(value)


def _sum(left: Any, right: Any, sign: int) -> Value:
    other = _as_quantity(right)
    return _message("Quantity")(text=(_quantity(left) + (other if sign > 0 else -other)).decimal())


def _as_integer(value: Value) -> int:
    whole = _quantity(value).as_int64()
    if whole is None:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(value: Value) -> bool:
    return _quantity(value).as_int64() is not None


def _number(name: str) -> Callable[[Value], int]:
    return lambda value: int(getattr(Semver.parse(value.text), name))


def _sign(value: Value) -> int:
    return _quantity(value).sign


def _includes(value: Any, wanted: Value) -> bool:
    """`includes`: the attribute is the value, or a list that has it (DRAListTypeAttributes)."""
    return any(_equal(one, wanted) for one in (value if isinstance(value, list) else (value,)))


def _equal(left: Any, right: Value) -> bool:
    """Return whether two values are equal in CEL, where true is not a number."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature for the checker; the first parameter of a member is its receiver."""

    id: str
    returns: TypeName
    parameters: Sequence[TypeName]
    member: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its signatures, and one implementation per number of parameters."""

    name: str
    overloads: Sequence[Overload]
    implementations: dict[int, Callable[..., Value]]


def _one(name: str, overload: str, returns: TypeName, of: TypeName, how: Callable[..., Value]) -> Function:
    return Function(name, (Overload(overload, returns, (of,)),), {1: how})


def _two(name: str, kind: str, returns: TypeName, how: Callable[[Any, Value], Value]) -> Function:
    both = (
        Overload(f"quantity_{kind}", returns, ("Quantity", "Quantity")),
        Overload(f"semver_{kind}", returns, ("Semver", "Semver")),
    )
    return Function(name, both, {2: how})


def _arithmetic(name: str, sign: int) -> Function:
    overloads = (
        Overload(f"quantity_{name}", "Quantity", ("Quantity", "Quantity")),
        Overload(f"quantity_{name}_int", "Quantity", ("Quantity", "int")),
    )
    return Function(name, overloads, {2: lambda left, right: _sum(left, right, sign)})


def _maker(name: str, returns: TypeName, how: Callable[..., Value], *, normalizes: bool) -> Function:
    overloads = [Overload(f"string_to_{name}", returns, ("string",), member=False)]
    implementations = {1: how}
    if normalizes:
        overloads.append(Overload(f"string_bool_to_{name}", returns, ("string", "bool"), member=False))
        implementations[2] = how
    return Function(name, overloads, implementations)


FUNCTIONS: tuple[Function, ...] = (
    _maker("quantity", "Quantity", quantity_value, normalizes=False),
    _maker("isQuantity", "bool", _is_quantity, normalizes=False),
    _maker("semver", "Semver", semver_value, normalizes=True),
    _maker("isSemver", "bool", _is_semver, normalizes=True),
    _two("compareTo", "compare_to", "int", _compare),
    _two("isGreaterThan", "is_greater_than", "bool", lambda a, b: _compare(a, b) > 0),
    _two("isLessThan", "is_less_than", "bool", lambda a, b: _compare(a, b) < 0),
    _arithmetic("add", 1),
    _arithmetic("sub", -1),
    _one("sign", "quantity_sign", "int", "Quantity", _sign),
    _one("isInteger", "quantity_is_integer", "bool", "Quantity", _is_integer),
    _one("asInteger", "quantity_as_integer", "int", "Quantity", _as_integer),
    _one(
        "asApproximateFloat", "quantity_as_float", "double", "Quantity",
        lambda q: _quantity(q).approximate_float(),
    ),
    _one("major", "semver_major", "int", "Semver", _number("major")),
    _one("minor", "semver_minor", "int", "Semver", _number("minor")),
    _one("patch", "semver_patch", "int", "Semver", _number("patch")),
)  # fmt: skip
LIST_FUNCTIONS: tuple[Function, ...] = (
    Function("includes", (Overload("dyn_includes", "bool", ("dyn", "dyn")),), {2: _includes}),
)
