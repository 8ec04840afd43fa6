"""Copies of objects without a finalizer. Pure."""

from __future__ import annotations

from nominee.machinery.api.kinds import M
from nominee.machinery.api.objects import metadata_of


def without_finalizer(obj: M, finalizer: str) -> M | None:
    """Return a copy of the object without the finalizer, None where the object does not have it."""
    if finalizer not in metadata_of(obj).finalizers:
        return None
    new = type(obj)()
    new.CopyFrom(obj)
    metadata_of(new).finalizers.remove(finalizer)
    return new
