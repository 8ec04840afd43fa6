"""The two environments of an expression: one checks its types, the other evaluates it.

They differ because the library keeps one implementation per function and number of parameters, while the
checker must tell `isGreaterThan` of quantities from that of versions. This module imports the library.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from nominee.machinery.cel.functions import FUNCTIONS, LIST_FUNCTIONS, Function, Overload, message_pool

_T = cel.Type
CelObject = Any
"""A type, declaration or environment of the library, which has no stubs."""
_TYPES: dict[str, CelObject] = {
    "string": _T.STRING, "int": _T.INT, "bool": _T.BOOL, "double": _T.DOUBLE, "dyn": _T.DYN, "list": _T.LIST,
    "Quantity": _T("kubernetes.Quantity"), "Semver": _T("kubernetes.Semver"),
}  # fmt: skip
ERROR = _T.ERROR
BOOL = _T.BOOL
DYN = _T.DYN


def _standard() -> list[CelObject]:
    return [ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()]


def _declared(function: Function, overloads: list[Overload]) -> CelObject:
    return cel.FunctionDecl(
        function.name,
        [
            cel.Overload(
                o.id,
                return_type=_TYPES[o.returns],
                parameters=[_TYPES[p] for p in o.parameters],
                is_member=o.member,
            )
            for o in overloads
        ],
    )


def _implemented(function: Function) -> CelObject:
    """Return one overload per number of parameters; the types are dynamic."""
    overloads = []
    for count, how in function.implementations.items():
        like = next(o for o in function.overloads if len(o.parameters) == count)
        overloads.append(
            cel.Overload(
                like.id, return_type=_T.DYN, parameters=[_T.DYN] * count, is_member=like.member, impl=how
            )
        )
    return cel.FunctionDecl(function.name, overloads)


def _functions(list_attributes: bool) -> tuple[Function, ...]:
    return FUNCTIONS + LIST_FUNCTIONS if list_attributes else FUNCTIONS


@cache
def checking(*, list_attributes: bool, multiple_allocations: bool, whole: bool = False) -> CelObject:
    """Return the environment that checks types. `whole`: `device` itself may be passed around, untyped."""
    domains = _T.Map(_T.STRING, _T.Map(_T.STRING, _T.DYN))
    if whole:
        variables: dict[str, CelObject] = {"device": _T.Map(_T.STRING, _T.DYN)}
    else:
        variables = {
            "device.driver": _T.STRING,
            "device.attributes": domains,
            "device.capacity": _T.Map(_T.STRING, _T.Map(_T.STRING, _TYPES["Quantity"])),
        }
        if multiple_allocations:
            variables["device.allowMultipleAllocations"] = _T.BOOL
    declared = [_declared(f, list(f.overloads)) for f in _functions(list_attributes)]
    extension = cel.CelExtension("kubernetes", declared)
    return cel.NewEnv(message_pool(), variables=variables, extensions=[*_standard(), extension])


@cache
def evaluating(*, list_attributes: bool) -> CelObject:
    """Return the environment that evaluates; it has all functions, and no types."""
    implemented = [_implemented(f) for f in _functions(list_attributes)]
    extension = cel.CelExtension("kubernetes", implemented)
    return cel.NewEnv(
        message_pool(), variables={"device": _T.Map(_T.STRING, _T.DYN)}, extensions=[*_standard(), extension]
    )
