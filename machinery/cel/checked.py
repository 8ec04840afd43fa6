"""A checked expression as the library serializes it: `cel.expr.CheckedExpr` in an Any.

Only the fields that are read here are declared. Source: google/cel-spec, proto/cel/expr.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any as AnyMessage

_PACKAGE = "nominee.cel"
_TYPES = {"int64": 3, "bool": 8, "string": 9, "bytes": 12, "enum": 5}  # an enum is read as its number
# Message: (field, number, type); a type with * is repeated, a type that is no scalar is a message.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "CheckedExpr": (("references", 2, "Referred*"), ("types", 3, "Typed*"), ("expr", 4, "Expr")),
    "Referred": (("key", 1, "int64"), ("value", 2, "Reference")),
    "Reference": (("overloads", 3, "string*"),),
    "Typed": (("key", 1, "int64"), ("value", 2, "Type")),
    "Type": (
        ("primitive", 3, "enum"), ("well_known", 5, "enum"), ("list", 6, "ListType"), ("map", 7, "MapType"),
        ("message", 9, "string"), ("parameter", 10, "string"), ("type", 11, "Type"),
        ("abstract", 14, "AbstractType"),
    ),
    "ListType": (("element", 1, "Type"),),
    "MapType": (("key", 1, "Type"), ("value", 2, "Type")),
    "AbstractType": (("name", 1, "string"), ("parameters", 2, "Type*")),
    "Expr": (
        ("id", 2, "int64"), ("constant", 3, "Constant"), ("ident", 4, "Ident"), ("select", 5, "Select"),
        ("call", 6, "Call"), ("list", 7, "List"), ("struct", 8, "Struct"), ("loop", 9, "Comprehension"),
    ),
    "Constant": (("bool", 2, "bool"), ("int64", 3, "int64"), ("string", 6, "string"), ("bytes", 7, "bytes")),
    "Ident": (("name", 1, "string"),),
    "Select": (("operand", 1, "Expr"), ("field", 2, "string"), ("test_only", 3, "bool")),
    "Call": (("target", 1, "Expr"), ("function", 2, "string"), ("args", 3, "Expr*")),
    "List": (("elements", 1, "Expr*"),),
    "Struct": (("message", 1, "string"), ("entries", 2, "Entry*")),
    "Entry": (("key", 3, "Expr"), ("value", 4, "Expr")),
    "Comprehension": (
        ("iter_var", 1, "string"), ("iter_range", 2, "Expr"), ("accu_var", 3, "string"),
        ("accu_init", 4, "Expr"), ("condition", 5, "Expr"), ("step", 6, "Expr"), ("result", 7, "Expr"),
        ("iter_var2", 8, "string"),
    ),
}  # fmt: skip


@cache
def _message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="nominee/checked.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, of in fields:
            type_ = of.rstrip("*")
            row: Any = message.field.add(name=field, number=number)
            row.label = 3 if of.endswith("*") else 1
            if type_ in _TYPES:
                row.type = _TYPES[type_]
            else:
                row.type, row.type_name = 11, f".{_PACKAGE}.{type_}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.CheckedExpr"))


def read(serialized: bytes) -> Any:
    """Return the CheckedExpr of the bytes that `Expression.serialize` returns."""
    return _message().FromString(AnyMessage.FromString(serialized).value)
