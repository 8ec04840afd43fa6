"""Patches of objects, applied to their JSON as clients see it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from nominee.apiserver.objects.requests import PatchKind, WriteOptions
from nominee.apiserver.registry.writes import json_patch
from nominee.apiserver.schema import body_type, version_fields
from nominee.apiserver.schema.documents import SyntaxProblem, parse_json, strict_problems
from nominee.apiserver.schema.go_errors import conversion_problem, unmarshal_problem
from nominee.apiserver.validation import field
from nominee.machinery.api.errors import GroupKind, StatusError, bad_request, invalid, request_too_large
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.features.gates import Version
from nominee.machinery.patch.json_patch import PatchError, merge_patch, strategic_merge_patch
from nominee.machinery.patch.strategic_schema import go_text
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import DecodeError, json_type

_NO_MERGE_PATCH = "Invalid JSON Patch"
_PARTS = frozenset({"metadata", "spec", "status"})


@dataclass(slots=True)
class Validation:
    """Field validation of a patch: `found` collects unknown and duplicate fields; `strict` refuses them."""

    version: Version = version_fields.TABLE_VERSION
    strict: bool = False
    duplicates: list[str] = dataclass_field(default_factory=list)
    found: list[str] = dataclass_field(default_factory=list)


def validation_of(options: WriteOptions, version: Version) -> Validation | None:
    """Return the field validation of a patch, or None when no client would see it."""
    if options.field_validation == "Strict":
        return Validation(version, strict=True)
    return Validation(version) if options.warn and options.field_validation != "Ignore" else None


def warnings(validation: Validation | None) -> list[str]:
    """Return the findings of field validation as warnings, unless they are errors."""
    return [] if validation is None or validation.strict else validation.found


def parse(patch_kind: PatchKind, patch: bytes, validation: Validation | None = None) -> Any:
    """Parse a patch that is not an apply.

    Raises: StatusError 400.
    """
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
        go_type = "map[string]interface {}"
        if patch_kind is PatchKind.JSON:
            go_type = "jsonpatch.Patch" if validation is None else "[]handlers.jsonPatchOp"
        raise _undecodable(patch_kind, _no_such(document, go_type), validation)
    if isinstance(document, list):
        if validation is not None:
            _check_members(document)
            unknown = [
                f"[{number}].{name}"
                for number, operation in enumerate(document)
                for name in operation or ()
                if name not in json_patch.MEMBERS
            ]
            in_order = strict_problems(parsed, unknown)
            validation.duplicates = [f"json patch {text}" for text in in_order]
        _check_operations(document)
    elif validation is not None:
        validation.duplicates = parsed.duplicates
    return document


def _check_members(operations: list[Any]) -> None:
    """Check the operations' fields, which field validation decodes before the patch library does.

    Raises: StatusError 400 for an operation that is not an object or has members of a wrong type.
    """
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: {_no_such(operation, 'handlers.jsonPatchOp')}")
        for name in json_patch.TEXT_MEMBERS:
            value = operation.get(name)
            if value is not None and not isinstance(value, str):
                problem = f"cannot unmarshal {json_type(value)} into Go struct field jsonPatchOp.{name}"
                raise bad_request(f"error decoding patch: json: {problem} of type string")


def _check_operations(operations: list[Any]) -> None:
    """Check the form and the number of operations.

    Raises: StatusError 400 for an operation that is not an object, 413 for too many.
    """
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
    kind: AnyKind, patch_kind: PatchKind, patch: Any, current: Any, validation: Validation | None = None
) -> Any:
    """Return a new object with the patch applied; `current` stays unchanged.

    Raises: StatusError 400, 422, and the code of a strategic merge patch's error.
    """
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
    unknown.sort(key=None if patch_kind is PatchKind.STRATEGIC else _members)
    validation.found = [*validation.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if validation.found and validation.strict:
        problem = f"strict decoding error: {', '.join(validation.found)}"
        whole = _merged(patch_kind, kind.message.DESCRIPTOR.full_name, _document(kind, current), patch)
        raise _unfit(_shown(patch_kind, patch, whole), problem)
    return new


def _members(path: str) -> list[str]:
    """Return the key that orders unknown fields as upstream does: by members, without list indexes."""
    return path.partition("[")[0].split(".")


def _document(kind: AnyKind, current: Any) -> dict[str, Any]:
    """Return the object's JSON with its type, which that of a Scale lacks."""
    return {"kind": kind.kind, "apiVersion": kind.api_version, **codec.to_json(current)}


def _shown(patch_kind: PatchKind, patch: Any, changed: Any) -> str:
    """Return the value for an error: the patched object, or the patch if it is a strategic merge patch."""
    if patch_kind is PatchKind.STRATEGIC:
        return go_text(patch)
    return json.dumps(dict(sorted(changed.items())), separators=(",", ":"), ensure_ascii=False)


def _unfit(shown: str, problem: str) -> StatusError:
    """Return the 422 of a patch whose result cannot be decoded."""
    return invalid(GroupKind("", ""), "", [field.invalid("patch", shown, problem)])


def _apply_to_all(
    kind: AnyKind, patch_kind: PatchKind, patch: Any, current: Any, unknown: list[str] | None
) -> Any:
    document = _document(kind, current)
    changed = _merged(patch_kind, kind.message.DESCRIPTOR.full_name, document, patch)
    # A strategic merge patch becomes an object of the endpoint's type, whichever type it names.
    problem = "" if patch_kind is PatchKind.STRATEGIC else _other_type(kind, changed)
    if problem:
        raise _unfit(_shown(patch_kind, patch, changed), problem)
    try:
        made: Any = codec.from_json(kind.message, changed, unknown_fields=unknown)
    except codec.DecodeError as error:
        problem = _decode_problem(patch_kind, kind, changed, error)
        raise _unfit(_shown(patch_kind, patch, changed), problem) from None
    mark_reset(changed.get("metadata"), made.metadata)
    return made


def _decode_problem(patch_kind: PatchKind, kind: AnyKind, document: Any, error: DecodeError) -> str:
    """Return the problem of a patched document: only a strategic patch's is not decoded from JSON."""
    describe = conversion_problem if patch_kind is PatchKind.STRATEGIC else unmarshal_problem
    return describe(kind.message, document, error)


def _other_type(kind: AnyKind, document: dict[str, Any]) -> str:
    """Return why a patched object is not a `kind`, or ""; a kind that was removed is the endpoint's.

    Upstream converts another version of the kind.
    """
    problem = body_type.type_problem(document)
    if problem:
        return f"couldn't get version/kind; {problem}"
    version, name = document.get("apiVersion") or "", document.get("kind") or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return ""
    if body_type.is_other_version(version, name, kind.api_version, kind.kind):
        return ""
    return body_type.unreadable(document, version, name, kind.api_version, kind.kind)


def mark_reset(document: Any, metadata: Any) -> None:
    """Represent an empty list of managedFields, which resets them, by one empty entry.

    In a message an empty list is the same as an absent one.
    """
    if isinstance(document, dict) and document.get("managedFields") == []:
        metadata.managedFields.add()


def json_patched(document: Any, patch: list[Any]) -> Any:
    """Return the document with a JSON patch applied.

    Raises: StatusError 422.
    """
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


def _parts(kind: AnyKind, patch: Any) -> dict[str, Any] | None:
    """Return the patch by the object's parts (metadata, spec, status), or None when it patches other fields.

    Then only those parts are converted to JSON, which halves the work of patches from schedulers and
    kubelets.
    """
    fields = kind.message.DESCRIPTOR.fields_by_name
    for name, value in patch.items():
        part = fields.get(name)
        if name not in _PARTS or part is None or not isinstance(value, dict) or "$patch" in value:
            return None
    return dict(patch)


def _apply_to_parts(
    kind: AnyKind, patch_kind: PatchKind, patch: Any, current: Any, unknown: list[str] | None
) -> Any:
    new = copy_of(current)
    for name, own in patch.items():
        part = getattr(new, name)
        message = type(part)
        document = codec.to_json(part) if new.HasField(name) else {}
        changed = _merged(patch_kind, message.DESCRIPTOR.full_name, document, own)
        found: list[str] = []
        try:
            part.CopyFrom(codec.from_json(message, changed, unknown_fields=found))
        except codec.DecodeError as error:
            whole = {**_document(kind, current), name: changed}
            below = DecodeError(_below(name, error), error.message)
            problem = _decode_problem(patch_kind, kind, whole, below)
            raise _unfit(_shown(patch_kind, patch, whole), problem) from None
        part.SetInParent()
        if name == "metadata":
            mark_reset(changed, part)
        if unknown is not None:
            unknown += [f"{name}.{path}" for path in found]
    return new


def _below(name: str, error: DecodeError) -> str:
    return f"{name}.{error.path}" if error.path else name
