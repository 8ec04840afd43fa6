"""Patches applied to objects: through their JSON, as clients see them."""

from __future__ import annotations

import json
from typing import Any

from apiserver.registry import json_patch
from apiserver.requests import PatchKind
from apiserver.validation import field
from machinery.errors import GroupKind, StatusError, bad_request, invalid, request_too_large
from machinery.kinds import Kind
from machinery.patch import PatchError, merge_patch, strategic_merge_patch
from machinery.wire import codec

_MEDIA_TYPES = {
    PatchKind.APPLY: "application/apply-patch+yaml",
}

_PARTS = frozenset({"metadata", "spec", "status"})


def parse(patch_kind: PatchKind, patch: bytes) -> Any:
    """The patch's JSON; 415 for a kind that is not supported, 400 for what is no JSON object."""
    if patch_kind is PatchKind.APPLY:
        media = _MEDIA_TYPES.get(patch_kind, "unknown")
        supported = (
            "application/json-patch+json, application/merge-patch+json,"
            " application/strategic-merge-patch+json"
        )
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
    if patch_kind is PatchKind.JSON:
        if not isinstance(document, list):
            raise bad_request("error decoding patch: it must be a JSON array")
        if len(document) > json_patch.OPERATIONS_MAX:
            text = f"The allowed maximum operations in a JSON patch is {json_patch.OPERATIONS_MAX}"
            raise request_too_large(f"{text}, got {len(document)}")
    elif not isinstance(document, dict):
        raise bad_request("error decoding patch: it must be a JSON object")
    return document


def apply(kind: Kind[Any], patch_kind: PatchKind, patch: Any, current: Any) -> Any:
    """A new object; `current` stays. Raises 400 and 422."""
    try:
        parts = _parts(kind, patch) if isinstance(patch, dict) else None
        if parts is not None:
            return _apply_to_parts(kind, patch_kind, parts, current)
        document = codec.to_json(current)
        changed = _merged(patch_kind, kind.message.DESCRIPTOR.full_name, document, patch)
        if (changed.get("apiVersion"), changed.get("kind")) != (document["apiVersion"], document["kind"]):
            problem = "a patch cannot change what kind of object it is"
            raise invalid(GroupKind("", ""), "", [field.invalid("patch", json.dumps(changed), problem)])
        return codec.from_json(kind.message, changed)
    except PatchError as error:
        reason = {400: "BadRequest", 422: "Invalid"}.get(error.code, "")
        raise StatusError(error.code, reason, str(error)) from None
    except codec.DecodeError as error:
        raise bad_request(str(error)) from None


def json_patched(document: Any, patch: list[Any]) -> Any:
    """A JSON patch applied; 422."""
    try:
        changed = json_patch.apply(document, patch)
    except json_patch.Rejected:
        raise json_patch.rejected() from None
    if not isinstance(changed, dict):
        raise json_patch.rejected()
    return changed


def _merged(patch_kind: PatchKind, message: str, document: Any, patch: Any) -> Any:
    if patch_kind is PatchKind.JSON:
        return json_patched(document, patch)
    if patch_kind is PatchKind.MERGE:
        return merge_patch(document, patch)
    return strategic_merge_patch(message, document, patch)


def _parts(kind: Kind[Any], patch: Any) -> dict[str, Any] | None:
    """The patch by the object's parts (metadata, spec, status), where it patches nothing else.

    Then only those parts have to go through JSON: half the work for what schedulers and kubelets send.
    """
    fields = kind.message.DESCRIPTOR.fields_by_name
    for name, value in patch.items():
        part = fields.get(name)
        if name not in _PARTS or part is None or not isinstance(value, dict) or "$patch" in value:
            return None
    return dict(patch)


def _apply_to_parts(kind: Kind[Any], patch_kind: PatchKind, parts: dict[str, Any], current: Any) -> Any:
    new = kind.message()
    new.CopyFrom(current)
    for name, patch in parts.items():
        part = getattr(new, name)
        message = type(part)
        document = codec.to_json(part) if new.HasField(name) else {}
        changed = _merged(patch_kind, message.DESCRIPTOR.full_name, document, patch)
        part.CopyFrom(codec.from_json(message, changed))
        part.SetInParent()
    return new
