"""Bodies of requests: JSON, YAML or protobuf as messages, with their field validation.

Source: kube-apiserver 1.36, endpoints/handlers (create.go, rest.go: transformDecodeError), the serializers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.message import Message

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.http.media import JSON, OBJECTS, PROTOBUF, YAML, content_type
from nominee.apiserver.fronts.rest.http.messages import parse_int64
from nominee.apiserver.registry.writes.patching import mark_reset
from nominee.apiserver.schema import body_type, go_errors, version_fields
from nominee.apiserver.schema.documents import (
    Document,
    SyntaxProblem,
    parse_json,
    parse_yaml,
    strict_problems,
)
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import codec, envelope
from nominee.machinery.wire.text_check import unreadable
from nominee.machinery.wire.values.scalars import json_type

_SUMMARY_LENGTH_MAX = 30
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The type that the body must have; `aliases` are other versions with the same fields."""

    api_version: str
    kind: str
    message: type[Message]
    aliases: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and the warnings of its field validation."""

    message: Any
    warnings: tuple[str, ...] = ()


_ALIASES = {"Eviction": frozenset({"policy/v1beta1"})}


def expected_body(kind: AnyKind) -> Expected:
    """Return the type of bodies of this kind."""
    return Expected(kind.api_version, kind.kind, kind.message, _ALIASES.get(kind.kind, frozenset()))


def decode(
    data: bytes,
    content: str,
    wanted: Expected,
    field_validation: str = "",
    version: Version = version_fields.TABLE_VERSION,
) -> Body:
    """Return the message in a body, without the fields that `version` does not have.

    Raises: StatusError 400, 415.
    """
    form = content_type(content) or JSON
    if form == PROTOBUF:
        return Body(_from_protobuf(data, wanted))
    if form not in (JSON, YAML):
        raise problems.unsupported_media_type([OBJECTS])
    document = parse(data, form, wanted.kind)
    _check_type(document.value, wanted, data)
    return _from_document(document, wanted, field_validation, version)


def parse(data: bytes, form: str, kind: str) -> Document:
    """Parse a JSON or YAML document.

    Raises: StatusError 400 unless it is an object.
    """
    text = data.decode("utf-8", "replace")
    try:
        document = parse_yaml(text) if form == YAML else parse_json(text)
    except SyntaxProblem as problem:
        raise unrecognized_body(kind, f"json parse error: {problem}", data) from None
    if document.value is None:
        document.value = {}
    if not isinstance(document.value, dict):
        found = json_type(document.value)
        text = f"json: cannot unmarshal {found} into Go value of type {_TYPE_META}"
        raise unrecognized_body(kind, f"json parse error: {text}", data)
    return document


def unrecognized_body(kind: str, problem: str, data: bytes) -> StatusError:
    """Return the 400 of a body whose kind cannot be determined."""
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind;"
        f" {problem} ({_summary(data)})"
    )


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY_LENGTH_MAX else ""
    head = data[:_SUMMARY_LENGTH_MAX]
    return (head.decode("utf-8", "replace") if data[:1] == b"{" else head.hex()) + more


def _unhandled(api_version: str, kind: str, wanted: Expected, problem: str) -> StatusError:
    version = api_version.rpartition("/")[2]
    return errors.bad_request(
        f'{kind} in version "{version}" cannot be handled as a {wanted.kind}: {problem}'
    )


def _check_type(document: Mapping[str, Any], wanted: Expected, data: bytes) -> None:
    """Check that apiVersion and kind are the endpoint's, or absent.

    Raises: StatusError 400.
    """
    problem = body_type.type_problem(document)
    if problem:
        raise unrecognized_body(wanted.kind, problem, data)
    version = str(document.get("apiVersion") or "")
    if version.count("/") > 1:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {wanted.kind}): unexpected GroupVersion"
            f" string: {version} ({_summary(data)})"
        )
    api_version, kind = document.get("apiVersion") or wanted.api_version, document.get("kind") or wanted.kind
    check_gvk(api_version, kind, wanted, document)


def check_gvk(
    api_version: str, kind: str, wanted: Expected, document: Mapping[str, Any] | None = None
) -> None:
    """Check that a body has the expected type; `document` is the body if it is JSON.

    Raises: StatusError 400.
    """
    if kind == wanted.kind and (api_version == wanted.api_version or api_version in wanted.aliases):
        return
    if body_type.is_other_version(api_version, kind, wanted.api_version, wanted.kind):
        raise errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({wanted.api_version})"
        )
    if document is None:
        problem = body_type.unconvertible(api_version, kind, wanted.api_version, wanted.kind)
    else:
        problem = body_type.unreadable(document, api_version, kind, wanted.api_version, wanted.kind)
    raise _unhandled(api_version, kind, wanted, problem)


def _from_protobuf(data: bytes, wanted: Expected) -> Message:
    try:
        api_version, kind, raw = envelope.unwrap(data)
        check_gvk(api_version or wanted.api_version, kind or wanted.kind, wanted)
        message = wanted.message.FromString(raw)
        problem = unreadable(message)
        if problem:
            raise ProtobufError(problem)
        return message
    except (envelope.EnvelopeError, ProtobufError) as error:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {wanted.kind}): {error} ({_summary(data)})"
        ) from None


def _from_document(document: Document, wanted: Expected, field_validation: str, version: Version) -> Body:
    value = document.value
    unknown: list[str] = []
    try:
        message = codec.from_json(wanted.message, value, unknown_fields=unknown)
    except codec.DecodeError as error:
        problem = go_errors.unmarshal_problem(wanted.message, value, error)
        kind, api_version = value.get("kind") or wanted.kind, value.get("apiVersion") or wanted.api_version
        raise _unhandled(api_version, kind, wanted, problem) from None
    unknown += version_fields.drop(version, message)
    if isinstance(getattr(message, "metadata", None), meta.ObjectMeta):
        mark_reset(value.get("metadata"), message.metadata)  # type: ignore[attr-defined]
    found = strict_problems(document, unknown) if field_validation != "Ignore" else []
    if found and field_validation == "Strict":
        raise _unhandled(
            value.get("apiVersion") or wanted.api_version,
            value.get("kind") or wanted.kind,
            wanted,
            strict_error(found),
        )
    return Body(message, tuple(found))


def strict_error(found: list[str]) -> str:
    """Return all strict decoding errors as one message."""
    lines = [text for text in found if text.startswith("line ")]
    others = [text for text in found if not text.startswith("line ")]
    if lines:
        others.insert(0, "yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines))
    return f"strict decoding error: {', '.join(others)}"


def delete_options(data: bytes, content: str, query: Callable[[str], str]) -> meta.DeleteOptions:
    """Return the options of a DELETE from its body, or else from its query (`query` returns "" when absent).

    Raises: StatusError 400, 415.
    """
    if data:
        made: meta.DeleteOptions = decode(data, content, _delete_options(), "Ignore").message
        return made
    options = meta.DeleteOptions()
    grace, orphan = query("gracePeriodSeconds"), query("orphanDependents")
    if grace:
        options.gracePeriodSeconds = parse_int64(grace)
    if orphan:
        options.orphanDependents = orphan.lower() in ("1", "true")
    if query("propagationPolicy"):
        options.propagationPolicy = query("propagationPolicy")
    if query("dryRun"):
        options.dryRun.append(query("dryRun"))
    return options


@cache
def _delete_options() -> Expected:
    """Return the type of a DELETE's body: clients send the resource's version, meta.k8s.io/v1 or v1."""
    versions = frozenset({"v1", "meta.k8s.io/v1", *(kind.api_version for kind in kinds.KINDS)})
    return Expected("v1", "DeleteOptions", meta.DeleteOptions, versions)
