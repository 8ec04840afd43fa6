"""Fields of newer versions in stored objects: each is dropped, and an object without them is not touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nominee.apiserver.schema import stored_fields, version_fields
from nominee.apiserver.schema.version_fields import Part
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import envelope

_OLDER = [Version(1, minor) for minor in range(32, 37)]
_VALUES = {"string": "x", "bytes": b"x", "bool": True, "double": 1.0, "float": 1.0}


def _paths(parts: tuple[Part, ...], above: tuple[Part, ...] = ()) -> Iterator[tuple[Part, ...]]:
    for part in parts:
        if part.inner is None:
            yield (*above, part)
        else:
            yield from _paths(part.inner, (*above, part))


def _cases(version: Version) -> Iterator[tuple[AnyKind, tuple[Part, ...]]]:
    for kind in kinds.KINDS:
        for path in _paths(version_fields.parts_of(version, kind.message.DESCRIPTOR.full_name)):
            yield kind, path


def _set(message: Any, path: tuple[Part, ...]) -> None:
    """Set the field at the end of a path; a list on the path gets a second item that does not have it."""
    field, rest = path[0].field, path[1:]
    value = getattr(message, field.name)
    if not rest:
        if field.label == "optional":
            if field.is_scalar:
                setattr(message, field.name, _VALUES.get(field.type, 1))
            else:
                value.SetInParent()
        elif field.label == "map":
            if field.is_scalar:
                value["key"] = _VALUES.get(field.type, 1)
            else:
                value["key"].SetInParent()
        elif field.is_scalar:
            value.append(_VALUES.get(field.type, 1))
        else:
            value.add()
    elif field.label == "map":
        value["other"].SetInParent()
        _set(value["key"], rest)
    elif field.label == "repeated":
        _set(value.add(), rest)
        value.add()
    else:
        _set(value, rest)


def _made(kind: AnyKind, path: tuple[Part, ...]) -> Any:
    obj: Any = kind.message()
    obj.metadata.name = "n"
    _set(obj, path)
    return obj


@pytest.mark.parametrize("version", _OLDER, ids=str)
def test_each_field_is_dropped_as_from_a_body(version: Version) -> None:
    found = 0
    for kind, path in _cases(version):
        obj = _made(kind, path)
        prune = stored_fields.prune_of(version, kind)
        assert prune is not None
        pruned = prune(envelope.encode(obj))
        assert version_fields.drop(version, obj), (kind, path)
        assert pruned == envelope.encode(obj), (kind, path)
        assert prune(pruned) is pruned, (kind, path)
        found += 1
    assert found


@pytest.mark.parametrize("version", [Version(1, 37), Version(1, 38)], ids=str)
def test_the_newest_versions_look_at_no_object(version: Version) -> None:
    assert {stored_fields.prune_of(version, kind) for kind in kinds.KINDS} == {None}


def test_1_36_looks_at_nodes_only() -> None:
    version = Version(1, 36)
    assert [kind for kind in kinds.KINDS if stored_fields.prune_of(version, kind)] == [kinds.NODE]


def test_a_zero_that_is_always_sent_is_left_alone() -> None:
    """Objects that a server of the old version has stored are served as they are."""
    pod = core.Pod()
    pod.metadata.name = "p"
    for kind in ("PodScheduled", "Ready"):
        pod.status.conditions.add(type=kind, observedGeneration=0)
    pod.status.observedGeneration = 0
    stored = envelope.encode(pod)
    prune = stored_fields.prune_of(Version(1, 32), kinds.POD)
    assert prune is not None
    assert prune(stored) is stored
    # The last condition has zero; the first one's value counts.
    pod.status.conditions[0].observedGeneration = 2
    pruned = envelope.decode(kinds.POD, prune(envelope.encode(pod)))
    assert [condition.observedGeneration for condition in pruned.status.conditions] == [0, 0]


@pytest.mark.parametrize(
    "stored",
    [
        b"{}",
        envelope.MAGIC,
        envelope.wrap(kinds.NODE, b"\xff"),
        envelope.wrap(kinds.POD, b""),
        # Another kind, with bytes at the place of the field.
        envelope.wrap(kinds.POD, b"\x12\x02\x42\x00"),
    ],
)
def test_what_is_no_object_of_the_kind_is_left_to_its_reader(stored: bytes) -> None:
    prune = stored_fields.prune_of(Version(1, 36), kinds.NODE)
    assert prune is not None
    assert prune(stored) is stored
