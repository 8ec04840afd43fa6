"""Response bodies: objects, lists and statuses in the negotiated media type.

Protobuf passes through as bytes. Lists are written in pieces, so that a long list is not in memory twice and
does not block the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio.lowlevel
from google.protobuf.message import Message

from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.media import PARTIAL, PARTIAL_LIST, PROTOBUF, YAML, Media
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListPage
from nominee.apiserver.validation.field import for_html
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec, envelope, json_text

PIECE = 50
"""Objects that are encoded before other tasks run."""
_META = "meta.k8s.io"


def document(found: CachedObject) -> dict[str, Any]:
    """Return the JSON of an object; an object of a dry run has no resourceVersion."""
    made = codec.to_json(found.message)
    if "kind" not in made:
        # A Scale, which is no stored kind's message.
        made = {"kind": found.kind.kind, "apiVersion": found.kind.api_version, **made}
    if not found.revision:
        made["metadata"].pop("resourceVersion", None)
    return made


def encode(media: Media, made: dict[str, Any], *, pretty: bool = False) -> bytes:
    """Return a JSON document as JSON or YAML."""
    return text.dump_yaml(made) if media.form == YAML else text.dump_bytes(made, pretty=pretty)


def of_object(media: Media, found: CachedObject, *, pretty: bool = False) -> bytes:
    """Return the body with one object."""
    if media.shown_as == PARTIAL:
        return of_message(media, f"{_META}/{media.version}", PARTIAL, partial(found), pretty=pretty)
    if media.form == PROTOBUF:
        return found.data if found.revision else found.stored
    if media.form == YAML or pretty or not found.revision:
        return encode(media, document(found), pretty=pretty)
    return for_html(f"{_object_text(found)}\n").encode()


def _object_text(found: CachedObject) -> str:
    """Return the JSON of `document`, without dicts and not escaped."""
    kind, members = found.kind, _members(found)
    return f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}"{"," if members else ""}{members}}}'


def _members(found: CachedObject) -> str:
    return json_text.members(found.kind.message, envelope.raw_of(found.kind, found.data))


def of_message(media: Media, api_version: str, kind: str, message: Message, *, pretty: bool = False) -> bytes:
    """Return the body with a message that is not a stored object."""
    if media.form == PROTOBUF:
        return text.wrap_message(api_version, kind, message)
    body = {"kind": kind, "apiVersion": api_version, **codec.to_json(message)}
    return encode(media, body, pretty=pretty)


def partial(found: CachedObject) -> meta.PartialObjectMetadata:
    """Return an object's metadata alone."""
    made = meta.PartialObjectMetadata()
    made.metadata.CopyFrom(found.message.metadata)
    return made


def list_meta(page: ListPage) -> dict[str, Any]:
    """Return the ListMeta of a page; one of objects that are not stored has no resourceVersion."""
    made: dict[str, Any] = {"resourceVersion": page.resource_version} if page.resource_version else {}
    if page.continue_token:
        made["continue"] = page.continue_token
    if page.remaining is not None:
        made["remainingItemCount"] = page.remaining
    return made


async def of_list(
    media: Media, kind: AnyKind, page: ListPage, *, pretty: bool = False
) -> AsyncIterator[bytes]:
    """Yield a page of objects as a List, in pieces."""
    if media.form == PROTOBUF:
        async for piece in _protobuf_list(media, kind, page):
            yield piece
        return
    partial_list = media.shown_as == PARTIAL_LIST
    api_version = f"{_META}/{media.version}" if partial_list else kind.api_version
    name = PARTIAL_LIST if partial_list else f"{kind.kind}List"
    if pretty or media.form == YAML:
        items = [_item(found, media) for found in page.items]
        body = {"kind": name, "apiVersion": api_version, "metadata": list_meta(page), "items": items}
        yield encode(media, body, pretty=pretty)
        return
    head = text.dump({"kind": name, "apiVersion": api_version, "metadata": list_meta(page)})
    before = f'{head[:-1]},"items":['
    for start in range(0, len(page.items), PIECE):
        some = page.items[start : start + PIECE]
        yield (before + for_html(",".join(_item_text(found, media) for found in some))).encode()
        before = ","
        await anyio.lowlevel.checkpoint()
    yield b"]}\n" if before == "," else f"{before}]}}\n".encode()


def _item(found: CachedObject, media: Media) -> dict[str, Any]:
    if media.shown_as == PARTIAL_LIST:
        made = codec.to_json(partial(found))
        return {"kind": PARTIAL, "apiVersion": f"{_META}/{media.version}", **made}
    made = document(found)
    # Items of a list have no apiVersion and kind.
    del made["kind"], made["apiVersion"]
    return made


def _item_text(found: CachedObject, media: Media) -> str:
    """Return the JSON of `_item`, without dicts."""
    if media.shown_as == PARTIAL_LIST or not found.revision:
        return text.dump(_item(found, media))
    return f"{{{_members(found)}}}"


async def _protobuf_list(media: Media, kind: AnyKind, page: ListPage) -> AsyncIterator[bytes]:
    """Yield the envelope of a List: its raw is the ListMeta, then each item's own bytes under field 2."""
    head = kind.list_message()
    metadata: Any = head.metadata  # type: ignore[attr-defined]  # Message does not declare it
    metadata.resourceVersion = page.resource_version
    metadata.selfLink = ""
    setattr(metadata, "continue", page.continue_token)
    if page.remaining is not None:
        metadata.remainingItemCount = page.remaining
    pieces = [head.SerializeToString(deterministic=True)]
    for number, found in enumerate(page.items):
        if media.shown_as == PARTIAL_LIST:
            raw = partial(found).SerializeToString(deterministic=True)
        else:
            raw = envelope.unwrap(found.data if found.revision else found.stored)[2]
        pieces += (b"\x12", envelope.varint(len(raw)), raw)
        if number % PIECE == 0:
            await anyio.lowlevel.checkpoint()
    raw = b"".join(pieces)
    if media.shown_as == PARTIAL_LIST:
        yield envelope.wrap_as(f"{_META}/{media.version}", PARTIAL_LIST, raw)
    else:
        yield envelope.wrap_as(kind.api_version, f"{kind.kind}List", raw)
