"""Writes of owner references. An object that is gone is no error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from google.protobuf.message import Message

from nominee.controllers.claiming import ClaimedObjects, T
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_not_found
from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import owner_reference
from nominee.machinery.client.api_client import Client
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire.codec import to_json


async def adopt_and_release(client: Client, owner: Object, claims: ClaimedObjects[T]) -> list[T]:
    """Adopt and release the claimed objects; return those that `owner` owns then."""
    for obj in claims.adopt:
        await _patch(client, obj, [to_json(owner_reference(owner))])
    for obj in claims.release:
        await drop_references(client, obj, [owner.metadata.uid])
    return [*claims.owned, *claims.adopt]


async def drop_references(client: Client, obj: Object, uids: Iterable[str]) -> None:
    """Remove the references to the owners with these uids."""
    await _patch(client, obj, [{"$patch": "delete", "uid": uid} for uid in sorted(uids)])


async def _patch(client: Client, obj: Object, references: Sequence[Mapping[str, object]]) -> None:
    kind, metadata = kinds.of(cast("Message", obj)), obj.metadata
    change = {"metadata": {"ownerReferences": references, "uid": metadata.uid}}
    with ignoring(is_not_found):
        await client.patch(kind, metadata.name, metadata.namespace, change, patch_type=PatchType.STRATEGIC)
