"""Documents and patches that are nearly right, from the table of messages and a source of randomness."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import yaml

from nominee.machinery.api.kinds import Kind
from nominee.machinery.wire import codec, envelope, presence
from nominee.machinery.wire.schema import Field, messages

Document = Any
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
# fmt: off
_STRINGS = (
    "", "a", "A", "x/y", "a.b", "-", "*", "1", "1.5Gi", "-5", "1e99", "0x10", "999999999999999999999Ei", "1n",
    "Ki", "True", "true", "null", "Always", "Never", "None", "Delete", "Retain", "TCP", "100%", "-1%",
    "Exists", "In", "ClusterIP", "kubernetes.io/x", "a" * 64, "a" * 300, "é\u0000\U0001f600", "\ud800", " ",
    "a b", "\n", "${x}", "2020-01-01T00:00:00Z", "2020-13-01T00:00:00Z", "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z", "2020-01-01T00:00:00.5+14:00", "10.0.0.1", "::1", "10.0.0.0/33", "default",
    "spec.nodeName", "AAAA", "=", "!!",
)
_NUMBERS = (
    0, 1, -1, 2, 30, 100, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 10**30, 0.5,
    -0.0, 1e308, 1e-9,
)
_DIRECTIVES = (
    "$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "$x",
    "$setElementOrder/conditions", "$deleteFromPrimitiveList/args", "$setElementOrder/",
)
# fmt: on
_QUANTITIES = (
    "0",
    "1",
    "100m",
    "1.5Gi",
    "-1",
    "1e3",
    "1E",
    "",
    "abc",
    "1" * 40,
    "0.0000000001",
    3,
    0.1,
    "1e999999999",
)
_TIMES = (*(text for text in _STRINGS if "T00" in text or "T23" in text), "", "x", None, 5)
_OWN: dict[str, tuple[Any, ...]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _QUANTITIES,
    f"{_META}Time": _TIMES,
    f"{_META}MicroTime": _TIMES,
    f"{_META}Duration": ("1s", "-1h", "x", 1, "1e9h", "9" * 30 + "s"),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": (0, 1, -1, "50%", "x", "", 2**31, 1.5, "101%"),
    "k8s.io.apimachinery.pkg.runtime.RawExtension": ({}, {"a": 1}, [], "x", None, {"apiVersion": "v1"}),
    f"{_META}FieldsV1": ({}, {"f:spec": {}}, {"bad": 1}, [], "x"),
}
DEPTH_MAX = 6


class Generator:
    """Makes things up; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def junk(self, depth: int = 2) -> Any:
        """Any JSON."""
        pick = self.random.randrange(8 if depth else 5)
        if pick == 0:
            return None
        if pick == 1:
            return self.chance(2)
        if pick == 2:
            return self.random.choice(_NUMBERS)
        if pick in (3, 4):
            return self.random.choice(_STRINGS)
        if pick == 5:
            return [self.junk(depth - 1) for _ in range(self.random.randrange(3))]
        return {self.random.choice(_STRINGS): self.junk(depth - 1) for _ in range(self.random.randrange(3))}

    def of_message(self, full_name: str, depth: int) -> Any:
        """A document of a message, with some of its fields and some mistakes."""
        own = _OWN.get(full_name)
        if own is not None:
            return self.random.choice(own)
        if depth <= 0:
            return {}
        fields = list(_fields(full_name))
        if not fields:
            return {}
        chosen = self.random.sample(fields, min(len(fields), self.random.randrange(1, 5)))
        return {field.json_name: self.of_field(field, depth) for field in chosen}

    def of_field(self, field: Field, depth: int) -> Any:
        if self.chance(100):
            return self.junk()
        if field.label == "repeated":
            return [self._element(field, depth) for _ in range(self.random.randrange(4))]
        if field.label == "map":
            return {
                self.random.choice(_STRINGS): self._element(field, depth)
                for _ in range(self.random.randrange(3))
            }
        return self._element(field, depth)

    def _element(self, field: Field, depth: int) -> Any:
        if not field.is_scalar:
            return self.of_message(field.type, depth - 1)
        if self.chance(100):
            return self.junk(1)
        if field.type == "bool":
            return self.chance(2)
        if field.type in ("string", "bytes"):
            return self.random.choice(_STRINGS)
        return self.random.choice(_NUMBERS)

    def body(self, kind: Kind[Any], valid: Document) -> Document:
        """A valid object with some of its parts changed."""
        made = copy.deepcopy(valid)
        for _ in range(self.random.randrange(1, 3)):
            self._overlay(made, self.of_message(kind.message.DESCRIPTOR.full_name, DEPTH_MAX))
        return made

    def _overlay(self, target: Any, change: Any) -> None:
        for key, value in change.items():
            if key == "metadata" and isinstance(value, dict):
                # Otherwise nearly all would be refused for their name.
                value = {name: inner for name, inner in value.items() if name not in ("name", "namespace")}
            if isinstance(value, dict) and isinstance(target.get(key), dict) and not self.chance(6):
                self._overlay(target[key], value)
            else:
                target[key] = value

    def merge_patch(self, kind: Kind[Any]) -> Document:
        patch = self.of_message(kind.message.DESCRIPTOR.full_name, DEPTH_MAX)
        return self._sprinkle(patch, (None,)) if self.chance(2) else patch

    def strategic_patch(self, kind: Kind[Any]) -> Document:
        """A merge patch with directives where they belong and where they do not."""
        patch = self.of_message(kind.message.DESCRIPTOR.full_name, DEPTH_MAX)
        for _ in range(self.random.randrange(3)):
            places = [place for place in _containers(patch) if isinstance(place, dict)]
            place = self.random.choice(places)
            directive = self.random.choice(_DIRECTIVES)
            place[directive] = self.random.choice(
                ["delete", "replace", "merge", "odd", ["a"], [{"name": "c"}], [], {}, None, 1]
            )
        return self._sprinkle(patch, (None,)) if self.chance(3) else patch

    def _sprinkle(self, document: Any, values: tuple[Any, ...]) -> Any:
        places = [place for place in _containers(document) if place]
        if places:
            place = self.random.choice(places)
            keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
            place[self.random.choice(keys)] = self.random.choice(values)
        return document

    def json_patch(self, kind: Kind[Any], current: Document) -> Document:
        """Operations on paths that are there, and on others."""
        paths = list(_pointers(current, ""))
        made = []
        for _ in range(self.random.randrange(1, 5)):
            path = self.random.choice(paths)
            if self.chance(3):
                path += self.random.choice(["/-", "/0", "/x", "/~1", "/~2", "/999999999999", "/-1", "/", "x"])
            operation: dict[str, Any] = {
                "op": self.random.choice(["add", "remove", "replace", "copy", "move", "test", "odd"]),
                "path": path,
            }
            operation["value"] = (
                self.junk() if self.chance(2) else self.of_message(kind.message.DESCRIPTOR.full_name, 2)
            )
            operation["from"] = self.random.choice(paths)
            if self.chance(4):
                del operation[self.random.choice(list(operation))]
            made.append(operation)
        return self._sprinkle(made, (None, 1, "x", [], {})) if self.chance(8) else made

    def as_json(self, document: Document) -> bytes:
        """Its JSON, sometimes broken."""
        return self.broken(json.dumps(document).encode(), 6)

    def as_yaml(self, document: Document) -> bytes:
        try:
            text = yaml.safe_dump(document, allow_unicode=self.chance(2), default_flow_style=self.chance(2))
        except (yaml.YAMLError, UnicodeError):
            text = json.dumps(document)
        if self.chance(4):
            text = "x: &a [1, 2]\ny: *a\n<<: {z: 1}\n" + text
        return self.broken(text.encode("utf-8", "surrogatepass"), 5)

    def as_protobuf(self, kind: Kind[Any], document: Document) -> bytes | None:
        """The message where there is one, sometimes with other bytes in it."""
        try:
            message = codec.from_json(kind.message, document)
            presence.fill(message)
            raw = message.SerializeToString(deterministic=True)
        except (codec.DecodeError, ValueError):
            return None
        return self.broken(envelope.wrap(kind, self.broken(raw, 2)), 12)

    def broken(self, data: bytes, one_in: int) -> bytes:
        if not self.chance(one_in) or not data:
            return data
        changed = bytearray(data)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(changed)) if changed else 0
            pick = self.random.randrange(4)
            if pick == 0:
                changed[at:] = b""
            elif pick == 1 and changed:
                changed[at] = self.random.randrange(256)
            elif pick == 2:
                changed[at:at] = bytes(self.random.randrange(256) for _ in range(3))
            else:
                del changed[at : at + self.random.randrange(1, 8)]
        return bytes(changed)


def _fields(full_name: str) -> Iterator[Field]:
    """Fields as JSON shows them: those of an inlined message are its own."""
    found = messages().get(full_name)
    if found is None:
        return
    for field in found.fields:
        if field.inline and not field.is_scalar:
            yield from _fields(field.type)
        elif field.json_name:
            yield field


def _containers(document: Any) -> Iterator[Any]:
    if isinstance(document, dict | list):
        yield document
        for inner in document.values() if isinstance(document, dict) else document:
            yield from _containers(inner)


def _pointers(document: Any, path: str) -> Iterator[str]:
    yield path
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, inner in items:
        text = str(key).replace("~", "~0").replace("/", "~1")
        yield from _pointers(inner, f"{path}/{text}")
