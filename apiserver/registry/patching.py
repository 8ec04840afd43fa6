"""Patches applied to objects: through their JSON, as clients see them."""

from __future__ import annotations

import json
from typing import Any

from apiserver.requests import PatchKind
from machinery.errors import StatusError, bad_request
from machinery.kinds import Kind
from machinery.patch import PatchError, merge_patch, strategic_merge_patch
from machinery.wire import codec

_MEDIA_TYPES = {
    PatchKind.JSON: "application/json-patch+json",
    PatchKind.APPLY: "application/apply-patch+yaml",
}


def parse(patch_kind: PatchKind, patch: bytes) -> Any:
    """The patch's JSON; 415 for a kind that is not supported, 400 for what is no JSON object."""
    if patch_kind not in (PatchKind.MERGE, PatchKind.STRATEGIC):
        media = _MEDIA_TYPES.get(patch_kind, "unknown")
        supported = "application/merge-patch+json, application/strategic-merge-patch+json"
        raise StatusError(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {supported}"
            f" ({media} is not supported yet)",
        )
    try:
        document = json.loads(patch)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if not isinstance(document, dict):
        raise bad_request("error decoding patch: it must be a JSON object")
    return document


def apply(kind: Kind[Any], patch_kind: PatchKind, patch: Any, current: Any) -> Any:
    """A new object; `current` stays. Raises 400 and 422."""
    document = codec.to_json(current)
    try:
        if patch_kind is PatchKind.MERGE:
            changed = merge_patch(document, patch)
        else:
            changed = strategic_merge_patch(kind.message.DESCRIPTOR.full_name, document, patch)
        return codec.from_json(kind.message, changed)
    except (PatchError, codec.DecodeError) as error:
        raise bad_request(str(error)) from None
