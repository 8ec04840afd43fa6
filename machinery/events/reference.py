"""References to objects, as events carry them."""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core


def reference(obj: Message) -> core.ObjectReference:
    """Return a reference to an object as events carry it, its resourceVersion included."""
    kind = kinds.of(obj)
    metadata = metadata_of(obj)
    return core.ObjectReference(
        kind=kind.kind,
        apiVersion=kind.api_version,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resourceVersion=metadata.resourceVersion,
    )
