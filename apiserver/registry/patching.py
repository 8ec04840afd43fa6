"""Patches applied to objects: through their JSON, as clients see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from apiserver import version_fields
from apiserver.documents import SyntaxProblem, parse_json
from apiserver.go_errors import unmarshal_problem
from apiserver.registry import json_patch
from apiserver.requests import PatchKind
from apiserver.validation import field
from machinery.errors import GroupKind, StatusError, bad_request, invalid, request_too_large
from machinery.kinds import Kind
from machinery.patch import PatchError, merge_patch, strategic_merge_patch
from machinery.strategic_schema import go_text
from machinery.versions import Version
from machinery.wire import codec
from machinery.wire.scalars import DecodeError, json_type

_NO_MERGE_PATCH = "Invalid JSON Patch"
_PARTS = frozenset({"metadata", "spec", "status"})


@dataclass(slots=True)
class Validation:
    """Field validation of a patch: `found` gets what is unknown or comes twice; `strict` refuses it."""

    version: Version = version_fields.TABLE_VERSION
    strict: bool = False
    duplicates: list[str] = dataclass_field(default_factory=list)
    found: list[str] = dataclass_field(default_factory=list)


def parse(patch_kind: PatchKind, patch: bytes, validation: Validation | None = None) -> Any:
    """The JSON of a patch that is no apply; 400 for what is no patch of its kind."""
    try:
        parsed = parse_json(patch.decode("utf-8", "replace"))
    except SyntaxProblem as problem:
        raise _undecodable(patch_kind, str(problem), validation) from None
    document = parsed.value
    wanted = list if patch_kind is PatchKind.JSON else dict
    if document is None:
        if patch_kind is PatchKind.MERGE:
            raise bad_request(_NO_MERGE_PATCH)
        document = wanted()
    if not isinstance(document, wanted):
        # Field validation reads a JSON patch first, and does not know what an operation is.
        go_type = "map[string]interface {}"
        if patch_kind is PatchKind.JSON:
            go_type = "jsonpatch.Patch" if validation is None else "[]interface {}"
        raise _undecodable(patch_kind, _no_such(document, go_type), validation)
    if isinstance(document, list):
        _check_operations(document)
    if validation is not None:
        prefix = "json patch " if patch_kind is PatchKind.JSON else ""
        validation.duplicates = [f"{prefix}{text}" for text in parsed.duplicates]
    return document


def _check_operations(operations: list[Any]) -> None:
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            raise bad_request(_no_such(operation, "jsonpatch.Operation"))
    if len(operations) > json_patch.OPERATIONS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {json_patch.OPERATIONS_MAX}"
        raise request_too_large(f"{text}, got {len(operations)}")


def _no_such(value: Any, go_type: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go value of type {go_type}"


def _undecodable(patch_kind: PatchKind, problem: str, validation: Validation | None) -> StatusError:
    if patch_kind is PatchKind.STRATEGIC:
        return bad_request(problem)
    if validation is not None:
        return bad_request(f"error decoding patch: {problem}")
    return bad_request(_NO_MERGE_PATCH if patch_kind is PatchKind.MERGE else problem)


def apply(
    kind: Kind[Any], patch_kind: PatchKind, patch: Any, current: Any, validation: Validation | None = None
) -> Any:
    """A new object; `current` stays. Raises 400 and 422, and what a strategic patch's errors say."""
    unknown: list[str] | None = None if validation is None else []
    try:
        parts = _parts(kind, patch) if isinstance(patch, dict) else None
        if parts is not None:
            new = _apply_to_parts(kind, patch_kind, patch, current, unknown)
        else:
            new = _apply_to_all(kind, patch_kind, patch, current, unknown)
    except PatchError as error:
        if error.code == 422:
            raise _unfit(go_text(patch), str(error)) from None
        raise StatusError(error.code, "BadRequest" if error.code == 400 else "", str(error)) from None
    if validation is None or unknown is None:
        return new
    unknown += version_fields.drop(validation.version, new)
    validation.found = [*validation.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if validation.found and validation.strict:
        problem = f"strict decoding error: {', '.join(validation.found)}"
        raise _unfit(_shown(patch_kind, patch, codec.to_json(new)), problem)
    return new


def _shown(patch_kind: PatchKind, patch: Any, changed: Any) -> str:
    """What an error shows: the patched object, or for a strategic patch the patch."""
    if patch_kind is PatchKind.STRATEGIC:
        return go_text(patch)
    return json.dumps(changed, separators=(",", ":"), ensure_ascii=False)


def _unfit(shown: str, problem: str) -> StatusError:
    """422 of a patch whose outcome is no such object."""
    return invalid(GroupKind("", ""), "", [field.invalid("patch", shown, problem)])


def _apply_to_all(
    kind: Kind[Any], patch_kind: PatchKind, patch: Any, current: Any, unknown: list[str] | None
) -> Any:
    document = codec.to_json(current)
    changed = _merged(patch_kind, kind.message.DESCRIPTOR.full_name, document, patch)
    for name in ("apiVersion", "kind"):
        absent = patch_kind is PatchKind.STRATEGIC and name not in changed
        if not absent and changed.get(name) != document[name]:
            problem = "a patch cannot change what kind of object it is"
            raise _unfit(_shown(patch_kind, patch, changed), problem)
    try:
        made = codec.from_json(kind.message, changed, unknown_fields=unknown)
    except codec.DecodeError as error:
        problem = unmarshal_problem(kind.message, changed, error)
        raise _unfit(_shown(patch_kind, patch, changed), problem) from None
    mark_reset(changed.get("metadata"), made.metadata)
    return made


def mark_reset(document: Any, metadata: Any) -> None:
    """An empty list of managedFields says that they shall go, which a message cannot: one empty entry can."""
    if isinstance(document, dict) and document.get("managedFields") == []:
        metadata.managedFields.add()


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


def _apply_to_parts(
    kind: Kind[Any], patch_kind: PatchKind, patch: Any, current: Any, unknown: list[str] | None
) -> Any:
    new = kind.message()
    new.CopyFrom(current)
    for name, own in patch.items():
        part = getattr(new, name)
        message = type(part)
        document = codec.to_json(part) if new.HasField(name) else {}
        changed = _merged(patch_kind, message.DESCRIPTOR.full_name, document, own)
        found: list[str] = []
        try:
            part.CopyFrom(codec.from_json(message, changed, unknown_fields=found))
        except codec.DecodeError as error:
            whole = {**codec.to_json(current), name: changed}
            problem = unmarshal_problem(kind.message, whole, DecodeError(_below(name, error), error.message))
            raise _unfit(_shown(patch_kind, patch, whole), problem) from None
        part.SetInParent()
        if name == "metadata":
            mark_reset(changed, part)
        if unknown is not None:
            unknown += [f"{name}.{path}" for path in found]
    return new


def _below(name: str, error: DecodeError) -> str:
    return f"{name}.{error.path}" if error.path else name
