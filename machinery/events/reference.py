"""References to objects, as events carry them."""

from __future__ import annotations

from typing import Any

from machinery.api import kinds
from machinery.api.pb import core


def reference(obj: Any) -> core.ObjectReference:
    """Return a reference to an object as events carry it, its resourceVersion included."""
    kind = kinds.of(obj)
    return core.ObjectReference(
        kind=kind.kind,
        apiVersion=kind.api_version,
        namespace=obj.metadata.namespace,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        resourceVersion=obj.metadata.resourceVersion,
    )
