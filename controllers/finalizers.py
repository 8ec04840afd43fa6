"""Copies of objects without a finalizer. Pure."""

from __future__ import annotations

from typing import Any


def without_finalizer(obj: Any, finalizer: str) -> Any:
    """A copy without the finalizer, or None where it has none."""
    if finalizer not in obj.metadata.finalizers:
        return None
    new = type(obj)()
    new.CopyFrom(obj)
    new.metadata.finalizers.remove(finalizer)
    return new
