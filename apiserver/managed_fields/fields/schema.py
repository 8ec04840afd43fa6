"""Types of documents for merging: from the wire table, and how lists and maps merge.

A type is built when it is first needed.

Source: kube-openapi's schemaconv (its result for Kubernetes' definitions) and structured-merge-diff v6,
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, Final

from nominee.apiserver.managed_fields.fields.list_types import merge_rules
from nominee.machinery.api import kinds
from nominee.machinery.wire.schema import Field, messages

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_NUMBERS = frozenset({"int32", "int64", "uint32", "uint64", "double", "float"})
# List keys that have a default; other keys that Go always writes are empty when they are left out.
_DEFAULTS = {
    "k8s.io.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "k8s.io.api.core.v1.ServicePort": {"protocol": "TCP"},
    "k8s.io.api.core.v1.LocalObjectReference": {"name": ""},
}


class Shape(Enum):
    """The shapes of a type; `ANY` merges by the value's JSON type."""

    SCALAR = "scalar"
    LIST = "list"
    MAP = "map"
    ANY = "any"


@dataclass(slots=True, eq=False)
class Type:
    """The type of a value.

    `scalar` is string, numeric, boolean or untyped. An atomic list or map is one value; a list that is not
    atomic is a set, or has `keys`. `fields` are those of a struct; `element` is of lists, and of maps without
    fields.
    """

    shape: Shape
    scalar: str = ""
    atomic: bool = False
    keys: tuple[str, ...] = ()
    fields: Mapping[str, Type] = field(default_factory=dict)
    element: Type | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def field_type(self, name: str) -> Type | None:
        """Return the type of a field or a map's value; None for an unknown field."""
        return self.fields.get(name) or self.element


STRING: Final = Type(Shape.SCALAR, "string")
NUMERIC: Final = Type(Shape.SCALAR, "numeric")
BOOLEAN: Final = Type(Shape.SCALAR, "boolean")
UNTYPED: Final = Type(Shape.SCALAR, "untyped")
ANY: Final = Type(Shape.ANY)
_RAW: Final = Type(Shape.MAP, element=ANY)
_STRINGS: Final = Type(Shape.LIST, atomic=True, element=STRING)
# Types with their own JSON encoding: their types in the OpenAPI definitions.
_OWN = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": UNTYPED,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": UNTYPED,
    f"{_META}.Time": UNTYPED,
    f"{_META}.MicroTime": UNTYPED,
    f"{_META}.Duration": STRING,
    f"{_META}.FieldsV1": _RAW,
    f"{_META}.Verbs": _STRINGS,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _RAW,
    "k8s.io.api.authentication.v1.ExtraValue": _STRINGS,
    "k8s.io.api.authorization.v1.ExtraValue": _STRINGS,
}
_made: dict[str, Type] = {}


@cache
def _objects() -> frozenset[str]:
    """Return the messages that have an apiVersion and a kind."""
    return frozenset({str(kind.message.DESCRIPTOR.full_name) for kind in kinds.KINDS}) | {
        "k8s.io.api.autoscaling.v1.Scale"
    }


def of_message(full_name: str) -> Type:
    """Return the type of a message.

    Raises: KeyError when the wire table does not have it.
    """
    found = _made.get(full_name)
    if found is None:
        rules = merge_rules().get(full_name, {})
        found = Type(Shape.MAP, atomic=rules.get("*") == "atomic")
        _made[full_name] = found  # known before its fields: messages may recurse
        fields: dict[str, Type] = {}
        defaults = dict(_DEFAULTS.get(full_name, {}))
        _collect(full_name, rules, fields, defaults)
        if full_name in _objects():
            fields |= {"apiVersion": STRING, "kind": STRING}
        found.fields, found.defaults = fields, defaults
    return found


def _collect(
    full_name: str, rules: Mapping[str, str], fields: dict[str, Type], defaults: dict[str, Any]
) -> None:
    for each in messages()[full_name].fields:
        if each.inline and not each.is_scalar:
            inner = {**merge_rules().get(each.type, {}), **rules}
            _collect(each.type, inner, fields, defaults)
        elif each.json_name:
            fields[each.json_name] = _of_field(each, rules.get(each.json_name, ""))
            if each.always and each.is_scalar and each.label == "optional":
                zero = "" if each.type == "string" else False if each.type == "bool" else 0
                defaults.setdefault(each.json_name, zero)


def _of_field(each: Field, rule: str) -> Type:
    if each.type in _NUMBERS:
        element = NUMERIC
    elif each.is_scalar:
        element = BOOLEAN if each.type == "bool" else STRING
    else:
        element = _OWN.get(each.type) or of_message(each.type)
    if each.label == "map":
        return Type(Shape.MAP, atomic=rule == "atomic", element=element)
    if each.label != "repeated":
        return element
    if not rule or rule == "atomic":
        return Type(Shape.LIST, atomic=True, element=element)
    return Type(Shape.LIST, keys=() if rule == "set" else tuple(rule.split(",")), element=element)
