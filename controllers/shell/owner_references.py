"""The objects that an owner has, and writes of owner references. An object that is gone is no error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from google.protobuf.message import Message

from nominee.controllers.claiming import claim
from nominee.controllers.shell.controller import orphans_with
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import conflict, ignoring, is_not_found
from nominee.machinery.api.kinds import M, Object
from nominee.machinery.api.objects import is_terminating, key_of, metadata_of, owner_reference
from nominee.machinery.api.pb import meta
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire.codec import to_json


def _lives(obj: Message) -> bool:
    return not metadata_of(obj).HasField("deletionTimestamp")


async def adopt_and_release(
    client: Client,
    owner: Object,
    selector: meta.LabelSelector,
    informer: Informer[M],
    *,
    concerns: Callable[[M], bool] = lambda _: True,
    may_adopt: Callable[[M], bool] = _lives,
    releases: bool = True,
    finalizer: str = "",
) -> list[M]:
    """Adopt the objects that the selector matches, release others; return those that `owner` owns then.

    Objects that do not concern the owner are left alone. With `finalizer` the adopted ones get it, and the
    released ones lose it. The informer has the indexes `owner` and `orphans`.

    Raises:
        StatusError: the owner is gone or terminates, and the cache does not show it: to adopt what has just
            been orphaned would let the garbage collector delete it (controller_utils,
            RecheckDeletionTimestamp).
    """
    metadata = owner.metadata
    orphans = metadata.namespace
    for label, value in sorted(selector.matchLabels.items())[:1]:
        orphans = orphans_with(orphans, label, value)  # fewer than all
    near = (*informer.by_index("owner", metadata.uid), *informer.by_index("orphans", orphans))
    claims = claim(
        owner,
        selector,
        cast("Iterable[Object]", filter(concerns, near)),
        cast("Callable[[Object], bool]", may_adopt),
    )
    if claims.adopt:
        await _check_lives(client, owner)
    added = {"finalizers": [finalizer]} if finalizer else {}
    removed = {"$deleteFromPrimitiveList/finalizers": [finalizer]} if finalizer else {}
    for obj in claims.adopt:
        await _patch(client, obj, [to_json(owner_reference(owner))], added)
    for obj in claims.release if releases else ():
        await _patch(client, obj, _without([metadata.uid]), removed)
    return cast("list[M]", [*claims.owned, *claims.adopt])


async def _check_lives(client: Client, owner: Object) -> None:
    kind, key = kinds.of(cast("Message", owner)), key_of(owner)
    live = cast("Object", await client.get(kind, key.name, key.namespace))
    if live.metadata.uid != owner.metadata.uid or is_terminating(live):
        raise conflict(kind, key.name, "it is deleted and adopts nothing")


async def drop_references(client: Client, obj: Object, uids: Iterable[str]) -> None:
    """Remove the references to the owners with these uids."""
    await _patch(client, obj, _without(uids), {})


def _without(uids: Iterable[str]) -> list[Mapping[str, object]]:
    return [{"$patch": "delete", "uid": uid} for uid in sorted(uids)]


async def _patch(
    client: Client,
    obj: Object,
    references: Sequence[Mapping[str, object]],
    more: Mapping[str, Sequence[str]],
) -> None:
    kind, metadata = kinds.of(cast("Message", obj)), obj.metadata
    change = {"metadata": {"ownerReferences": references, "uid": metadata.uid, **more}}
    with ignoring(is_not_found):
        await client.patch(kind, metadata.name, metadata.namespace, change, patch_type=PatchType.STRATEGIC)
