"""The type that a body claims to have, and the scheme's error when another type is required.

Source: apimachinery 1.36, runtime/scheme.go, runtime/serializer/json, conversion/converter.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.schema.go_errors import unmarshal_problem
from machinery.api import kinds
from machinery.wire import codec
from machinery.wire.scalars import DecodeError, json_type

_SCHEME = "pkg/api/legacyscheme/scheme.go:30"


def malformed(document: Mapping[str, Any]) -> str:
    """Return the problem of an apiVersion or kind that is no string, or ""."""
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            found = json_type(value)
            problem = f"json: cannot unmarshal {found} into Go struct field .{key} of type string"
            return f"json parse error: {problem}"
    return ""


def is_other_version(api_version: str, kind: str, wanted_version: str, wanted_kind: str) -> bool:
    """Report whether these are two versions of one stored kind, which upstream converts to each other."""
    given, wanted = kinds.by_kind(api_version, kind), kinds.by_kind(wanted_version, wanted_kind)
    if given is None or wanted is None or api_version == wanted_version:
        return False
    return kinds.STORED_AS.get(given, given) is kinds.STORED_AS.get(wanted, wanted)


def unreadable(
    document: Mapping[str, Any], api_version: str, kind: str, wanted_version: str, wanted_kind: str
) -> str:
    """Return the problem of a document of another type: not registered, not decoded, or not converted."""
    given = kinds.by_kind(api_version, kind)
    if given is not None:
        try:
            codec.from_json(given.message, document)
        except DecodeError as error:
            return unmarshal_problem(given.message, document, error)
    return unconvertible(api_version, kind, wanted_version, wanted_kind)


def unconvertible(api_version: str, kind: str, wanted_version: str, wanted_kind: str) -> str:
    """Return the problem of an object of another type: not registered, or not converted."""
    item = kind.removesuffix("List")
    if kinds.by_kind(api_version, kind) is None and kinds.by_kind(api_version, item) is None:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    version = api_version.rpartition("/")[2]
    # The Go package of the internal type: "core", "apps", "rbac".
    package = wanted_version.rpartition("/")[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({package}.{wanted_kind}): unknown conversion"
