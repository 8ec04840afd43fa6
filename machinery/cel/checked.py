"""A checked expression as the library serializes it: `cel.expr.CheckedExpr` in an Any.

Only the fields that are read here are declared. Source: google/cel-spec, proto/cel/expr.
"""

from __future__ import annotations

from google.protobuf.any_pb2 import Any

from nominee.pb.nominee_cel.checked_pb2 import CheckedExpr


def read(serialized: bytes) -> CheckedExpr:
    """Return the CheckedExpr of the bytes that `Expression.serialize` returns."""
    return CheckedExpr.FromString(Any.FromString(serialized).value)
