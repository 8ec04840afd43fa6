"""Fields that the emulated version does not have: they are dropped from bodies, as unknown fields are.

The definitions of Kubernetes' releases list the fields of each version, whatever the feature gates. They are
read with the first object, and only when the emulated version is older than the wire table.
`stored_fields.py` drops the same fields from objects in etcd.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from nominee.apiserver.schema import releases
from nominee.machinery.features.gates import Version
from nominee.machinery.wire.schema import Field, messages

TABLE_VERSION = Version(1, 37)
"""The newest release of which the wire table has fields: it and later ones have all fields of the table."""
_TABLE_VERSIONS = (Version(1, 36), TABLE_VERSION)
"""The releases whose fields the table has: some fields of 1.36 are gone in 1.37."""


@dataclass(frozen=True, slots=True)
class Part:
    """A field that the version does not have (`inner` is None), or that contains such fields."""

    field: Field
    inner: tuple[Part, ...] | None

    @property
    def is_always_sent(self) -> bool:
        """Return whether Go sends the field also when it is zero: a scalar that is no pointer."""
        return self.field.label == "optional" and self.field.is_scalar and not self.field.pointer


def drop(version: Version, message: Any) -> list[str]:
    """Clear the fields that the version does not have, in place; return the paths of those that were set."""
    if version >= TABLE_VERSION:
        return []
    found: list[str] = []
    _drop(message, parts_of(version, message.DESCRIPTOR.full_name), "", found)
    return found


def _drop(message: Any, parts: tuple[Part, ...], prefix: str, found: list[str]) -> None:
    for part in parts:
        field = part.field
        plural = field.label != "optional"
        value = getattr(message, field.name)
        if not (value if plural else message.HasField(field.name)):
            continue
        path = f"{prefix}{field.json_name}"
        if part.inner is None:
            if value or not part.is_always_sent:
                found.append(path)
            message.ClearField(field.name)
        elif field.inline:
            _drop(value, part.inner, prefix, found)
        elif field.label == "map":
            for key in value:
                _drop(value[key], part.inner, f"{path}.{key}.", found)
        elif plural:
            for index, item in enumerate(value):
                _drop(item, part.inner, f"{path}[{index}].", found)
        else:
            _drop(value, part.inner, f"{path}.", found)


@cache
def _definitions(version: Version) -> dict[str, frozenset[str]]:
    """Return the properties of each schema; empty for a release without schemas."""
    found = releases.definitions(version) or {}
    return {name: frozenset(schema.get("properties", ())) for name, schema in found.items()}


def _schema_name(full_name: str) -> str:
    return f"io.k8s.{full_name.removeprefix('k8s.io.')}"


@cache
def parts_of(version: Version, full_name: str) -> tuple[Part, ...]:
    """Return the fields of a message that the version does not have, below the fields that contain them."""
    name = _schema_name(full_name)
    return _below(version, full_name, _definitions(version).get(name), _newest(name))


def _newest(name: str) -> frozenset[str] | None:
    """Return the properties that a schema has in the releases of the table."""
    found = [_definitions(each)[name] for each in _TABLE_VERSIONS if name in _definitions(each)]
    return frozenset().union(*found) if found else None


def _below(
    version: Version, full_name: str, known: frozenset[str] | None, newest: frozenset[str] | None
) -> tuple[Part, ...]:
    """Return the fields of a message that are not in `known`. Messages without a schema are left alone."""
    if known is None or newest is None:
        return ()
    parts = []
    for field in messages()[full_name].fields:
        if field.json_name and field.json_name in newest - known:
            parts.append(Part(field, None))
        elif not field.is_scalar and field.type in messages():
            if field.inline:
                inner = _below(version, field.type, known, newest)
            else:
                inner = parts_of(version, field.type) if field.json_name else ()
            if inner:
                parts.append(Part(field, inner))
    return tuple(parts)
