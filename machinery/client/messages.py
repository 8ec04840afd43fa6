"""Build the messages of the API from objects and patches, and read objects from them."""

from __future__ import annotations

import json

from nominee.machinery.api import errors
from nominee.machinery.api.kinds import AnyKind, Kind, M
from nominee.machinery.api.pb import core, policy
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api

BINDING = Kind("", "v1", "Binding", "bindings", core.Binding, core.Binding)
EVICTION = Kind("policy", "v1", "Eviction", "evictions", policy.Eviction, policy.Eviction)
PATCH_TYPES = {
    PatchType.JSON: api.PatchRequest.JSON,
    PatchType.MERGE: api.PatchRequest.MERGE,
    PatchType.STRATEGIC: api.PatchRequest.STRATEGIC,
    PatchType.APPLY: api.PatchRequest.APPLY,
}


def target_of(kind: AnyKind, namespace: str = "", name: str = "", subresource: str = "") -> api.Target:
    """Return the target of a request; cluster-scoped kinds have no namespace."""
    return api.Target(
        group=kind.group,
        version=kind.version,
        resource=kind.plural,
        namespace=namespace if kind.namespaced else "",
        name=name,
        subresource=subresource,
    )


def write_options(dry_run: bool, *, imported: bool = False) -> api.WriteOptions | None:
    return api.WriteOptions(dry_run=dry_run, imported=imported) if dry_run or imported else None


def patch_text(patch: object) -> bytes:
    """Return a patch's JSON."""
    if isinstance(patch, bytes):
        return patch
    return (patch if isinstance(patch, str) else json.dumps(patch, separators=(",", ":"))).encode()


def decode(kind: Kind[M], body: bytes) -> M:
    """Return the object that the server sent.

    Raises:
        StatusError: 500 for another kind, or bytes that cannot be decoded.
    """
    try:
        return envelope.decode(kind, body)
    except envelope.EnvelopeError as error:
        raise errors.internal(f"the API server sent no {kind.kind}: {error}") from error
