"""Protobuf bodies that parse and cannot be read."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire.text_check import unreadable


def quantity(text: str) -> core.Pod:
    made = core.Pod()
    made.metadata.name = "p"
    made.spec.containers.add(name="c").resources.requests["cpu"].string = text
    return made


@pytest.mark.parametrize(
    "text", ["", "1", "100m", "1.5Gi", "-2", "+.5k", "1e3", "1E-3", "0.1E", "12Ei", "3n"]
)
def test_quantities_that_are_some(text: str) -> None:
    assert unreadable(quantity(text)) == ""


@pytest.mark.parametrize("text", ["abc", "1x", "1.2.3", "1 ", "1e", '1"', "\\2", "é", "1\n"])
def test_texts_that_are_not_quantities(text: str) -> None:
    assert unreadable(quantity(text)) not in ("", "a string field contains invalid UTF-8")


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (core.ConfigMap, b"\n\x06\x12\x04\xf6rue"),
        (core.ConfigMap, b"\x12\x08\n\x02a\xff\x12\x02bc"),
        (core.ConfigMap, b"\x12\x08\n\x02ab\x12\x02\xffc"),
        (core.Pod, b"\x12\x0a\x12\x08\x0a\x02\xff\xfe\x12\x02ii"),
    ],
)
def test_bytes_that_are_not_texts(message: type[Message], data: bytes) -> None:
    assert unreadable(message.FromString(data)) == "a string field contains invalid UTF-8"


def test_texts_and_bytes_of_any_kind_are_fine() -> None:
    found = core.Secret(data={"a": bytes(range(256))})
    found.metadata.name, found.metadata.annotations["é"] = "s", '\U0001f600 raw: "x" string: "y" \\377'
    assert unreadable(found) == ""


@pytest.mark.parametrize(("text", "fine"), [(b'{"f:a":{}}', True), (b"{", False), (b"[" * 100_000, False)])
def test_json_within(text: bytes, fine: bool) -> None:
    found = core.ConfigMap()
    found.metadata.managedFields.append(meta.ManagedFieldsEntry(fieldsV1=meta.FieldsV1(Raw=text)))
    assert (unreadable(found) == "") is fine
